import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { PageOf, PageQuery } from '../../common/pagination/page.dto.js';
import { RepeatedText } from '../../common/validation/text-fields.js';
import type { SandboxSpec } from './sandbox-specs.js';

export class SandboxSpecIdsQueryDto {
  @RepeatedText('Id of a specification; repeat it for more, at most 100.', {
    required: true,
    most: 100,
    example: ['slipway'],
  })
  id: string[];
}

@ApiSchema({ name: 'SandboxSpecInfo' })
export class SandboxSpecDto {
  @ApiProperty({
    description: 'What `sandbox_spec_id` names. The first of the list is the default.',
    example: 'slipway',
  })
  id: string;

  @ApiProperty({
    type: [String],
    nullable: true,
    description: 'Program and arguments; null for the agent server that comes with the service.',
    example: null,
  })
  command: string[] | null;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' }) created_at: string;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Variables that the program gets. Everybody can read them: they hold no secrets.',
    example: {},
  })
  initial_env: Record<string, string>;

  @ApiProperty({
    description: 'Where conversations work; a relative path lies in the folder of the sandbox.',
    example: '/workspace/project',
  })
  working_dir: string;
}

export function toSandboxSpecDto(spec: SandboxSpec): SandboxSpecDto {
  return {
    id: spec.id,
    command: commandOf(spec),
    created_at: spec.createdAt.toISOString(),
    initial_env: spec.env,
    working_dir: spec.workingDir,
  };
}

function commandOf({ program }: SandboxSpec): string[] | null {
  switch (program.kind) {
    case 'command':
      return [program.command, ...program.args];
    case 'image':
      return program.args;
    case 'native':
      return null;
  }
}

@ApiSchema({ name: 'SandboxSpecInfoPage' })
export class SandboxSpecPageDto extends PageOf(SandboxSpecDto) {}

export class SearchSandboxSpecsQueryDto extends PageQuery('Specifications on a page.') {}
