import { ApiSchema } from '@nestjs/swagger';
import { Choice } from '../../../common/validation/choice.decorator.js';
import { Flag } from '../../../common/validation/flag.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import { PROVIDER_TYPES, type ProviderType } from '../../../git-providers/git-provider.types.js';
import { longestTitleProblem } from '../conversation-title.js';
import { branchProblem, repositoryProblem } from '../repository-problem.js';

/** Body of `PATCH /api/v1/app-conversations/{id}`. What is left out stays, null clears. */
@ApiSchema({ name: 'AppConversationUpdateRequest' })
export class UpdateConversationDto {
  @Text({
    nullable: true,
    trim: true,
    description: 'Title; null: made from what is said, again.',
    example: 'Parser tests',
    form: { minLength: 1, maxLength: 200 },
    rule: (title) => (title === '' ? 'Expected a title that is not blank.' : longestTitleProblem(title)),
  })
  title?: string | null;

  @Flag({ nullable: true, description: 'Kept and shown; nobody else sees the conversation.', example: false })
  public?: boolean | null;

  @Text({
    nullable: true,
    description: 'Repository it is about.',
    example: 'octo/app',
    rule: repositoryProblem,
  })
  selected_repository?: string | null;

  @Text({ nullable: true, description: 'Branch it is about.', example: 'main', rule: branchProblem })
  selected_branch?: string | null;

  @Choice({
    nullable: true,
    values: PROVIDER_TYPES,
    enumName: 'ProviderType',
    description: 'Where the repository is.',
    example: 'github',
  })
  git_provider?: ProviderType | null;
}
