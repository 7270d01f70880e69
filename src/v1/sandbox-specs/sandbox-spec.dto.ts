import { ApiSchema } from '@nestjs/swagger';
import { Shown, TEXT_MAP, Time } from '../../common/openapi/responses.js';
import { LookupIds, PageOf, PageQuery } from '../../common/pagination/page.dto.js';
import type { SandboxSpec } from './sandbox-specs.js';

export class SandboxSpecIdsQueryDto {
  @LookupIds('Id of a specification', 'slipway') id: string[];
}

@ApiSchema({ name: 'SandboxSpecInfo' })
export class SandboxSpecDto {
  @Shown('What `sandbox_spec_id` names. The first of the list is the default.', 'slipway') id: string;

  @Shown('Program and arguments; null for the agent server that comes with the service.', null, {
    type: [String],
    nullable: true,
  })
  command: string[] | null;

  @Time() created_at: string;

  @Shown('Variables that the program gets. Everybody can read them: they hold no secrets.', {}, TEXT_MAP)
  initial_env: Record<string, string>;

  @Shown('Where conversations work; a relative path lies in the folder of the sandbox.', '/workspace/project')
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
