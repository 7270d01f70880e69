import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../common/openapi/responses.js';
import type { Page } from '../../common/pagination/page.js';
import { Integer } from '../../common/validation/number-fields.js';
import { RepeatedText, Text } from '../../common/validation/text-fields.js';
import type { SandboxSpec } from './sandbox-specs.js';

/** Query of `GET /api/v1/sandbox-specs`. */
export class SandboxSpecIdsQueryDto {
  @RepeatedText({
    description: 'Id of a specification; repeat it for more, at most 100.',
    required: true,
    most: 100,
    example: ['slipway'],
  })
  id: string[];
}

/** A specification as clients see it. */
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

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;

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

/** A page of specifications. */
@ApiSchema({ name: 'SandboxSpecInfoPage' })
export class SandboxSpecPageDto {
  @ApiProperty({ type: [SandboxSpecDto] })
  items: SandboxSpecDto[];

  @NextPageId()
  next_page_id: string | null;
}

export function toSandboxSpecPageDto(page: Page<SandboxSpec>): SandboxSpecPageDto {
  return { items: page.items.map(toSandboxSpecDto), next_page_id: page.nextPageId };
}

/** Query of `GET /api/v1/sandbox-specs/search`. */
export class SearchSandboxSpecsQueryDto {
  @Text({ description: '`next_page_id` of the page before; empty for the first one.', example: '' })
  page_id?: string;

  @Integer({ description: 'Specifications on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;
}
