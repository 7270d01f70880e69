import { ApiSchema } from '@nestjs/swagger';
import { Choice } from '../../../common/validation/choice.decorator.js';
import { Integer } from '../../../common/validation/integer.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import { PROVIDER_TYPES, type ProviderType } from '../../../git-providers/git-provider.types.js';
import { TASK_TYPES, type TaskType } from '../../../suggested-tasks/task-type.js';
import { repositoryProblem } from '../repository-problem.js';
import type { SuggestedTask } from '../suggested-task/suggested-task.js';

const LONGEST_TITLE = 1000;

/** A suggested task, handed back the way `GET /api/user/suggested-tasks` gave it. */
@ApiSchema({ name: 'SuggestedTaskInput' })
export class SuggestedTaskInputDto implements SuggestedTask {
  @Choice({
    required: true,
    values: PROVIDER_TYPES,
    enumName: 'ProviderType',
    description: 'Where the repository is.',
    example: 'github',
  })
  git_provider: ProviderType;

  @Choice({
    required: true,
    values: TASK_TYPES,
    enumName: 'TaskType',
    description: 'What to do.',
    example: 'FAILING_CHECKS',
  })
  task_type: TaskType;

  @Text({
    required: true,
    description: 'Full name of the repository.',
    example: 'acme/checkout',
    rule: repositoryProblem,
  })
  repo: string;

  @Integer({
    required: true,
    minimum: 0,
    description: 'Number of the issue, pull or merge request; 0 for CREATE_MICROAGENT.',
    example: 128,
  })
  issue_number: number;

  @Text({
    required: true,
    description: 'Title as its author wrote it.',
    example: 'Retry card payments',
    rule: (title) => (title.length > LONGEST_TITLE ? `Expected at most ${LONGEST_TITLE} characters.` : null),
  })
  title: string;
}
