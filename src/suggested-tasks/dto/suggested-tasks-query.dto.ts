import { CommaList } from '../../common/validation/comma-list.decorator.js';
import { Integer } from '../../common/validation/integer.decorator.js';
import { PROVIDER_TYPES, type ProviderType } from '../../git-providers/git-provider.types.js';
import { TASK_TYPES, type TaskType } from '../task-type.js';

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
