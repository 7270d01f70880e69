import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { PROVIDER_TYPES, type ProviderType } from '../../git-providers/git-provider.types.js';
import type { Candidate } from '../candidate.js';
import { TASK_TYPES, type TaskType } from '../task-type.js';

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
