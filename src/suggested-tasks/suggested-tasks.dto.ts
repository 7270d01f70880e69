import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Integer } from '../common/validation/number-fields.js';
import { CommaList } from '../common/validation/text-fields.js';
import { PROVIDER_TYPES, type ProviderType } from '../git-providers/git-provider.js';
import { type Candidate, TASK_TYPES, type TaskType } from './candidate.js';

/** A piece of work to hand to an agent. */
@ApiSchema({ name: 'SuggestedTask' })
export class SuggestedTaskDto {
  @ApiProperty({
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    description: 'Where the repository is.',
    example: 'github',
  })
  git_provider: ProviderType;

  @ApiProperty({
    enum: TASK_TYPES,
    enumName: 'TaskType',
    description: 'What to do.',
    example: 'FAILING_CHECKS',
  })
  task_type: TaskType;

  @ApiProperty({ description: 'Full name of the repository.', example: 'acme/checkout' })
  repo: string;

  @ApiProperty({
    type: 'integer',
    description: 'Number of the issue, pull or merge request; 0 for CREATE_MICROAGENT.',
    example: 128,
  })
  issue_number: number;

  @ApiProperty({
    description: 'Title as its author wrote it, at most 256 characters.',
    example: 'Retry card payments',
  })
  title: string;
}

export function toSuggestedTaskDto(task: Candidate): SuggestedTaskDto {
  return {
    git_provider: task.provider,
    task_type: task.type,
    repo: task.repository,
    issue_number: task.number,
    title: task.title,
  };
}

/** Query of `GET /api/user/suggested-tasks`. */
export class SuggestedTasksQueryDto {
  @CommaList({
    values: TASK_TYPES,
    description: `Only tasks of these types, comma-separated. All by default: ${TASK_TYPES.join(', ')}.`,
    example: 'MERGE_CONFLICTS,FAILING_CHECKS',
  })
  task_types?: TaskType[];

  @CommaList({
    values: PROVIDER_TYPES,
    description: `Ask only these providers, comma-separated: ${PROVIDER_TYPES.join(', ')}.`,
    example: 'github,gitlab',
  })
  providers?: ProviderType[];

  @Integer({ minimum: 1, maximum: 200, default: 100, description: 'Tasks in the answer at most.' })
  limit?: number;
}
