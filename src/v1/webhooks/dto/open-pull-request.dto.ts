import { ApiSchema } from '@nestjs/swagger';
import { Flag } from '../../../common/validation/flag.decorator.js';
import { Identifier } from '../../../common/validation/identifier.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import { branchNameProblem } from '../branch-name.js';

const LONGEST_TITLE = 256;
/** GitHub takes no more. */
const LONGEST_BODY = 65_536;

/** Body of `POST /api/v1/webhooks/pull-requests`. */
@ApiSchema({ name: 'OpenPullRequest' })
export class OpenPullRequestDto {
  @Identifier({
    required: true,
    description: 'The conversation that works on the repository.',
    example: '8d7b2f7e-1c0a-4f3f-9b6f-2b0c5d4e3a21',
  })
  conversation_id: string;

  @Text({
    required: true,
    description: 'The branch with the changes, pushed already.',
    example: 'fix/parser',
    form: { minLength: 1, maxLength: 250 },
    rule: branchNameProblem,
  })
  source_branch: string;

  @Text({
    nullable: true,
    description: "Where the changes shall go; by default the repository's default branch.",
    example: 'main',
    form: { minLength: 1, maxLength: 250 },
    rule: branchNameProblem,
  })
  target_branch?: string | null;

  @Text({
    required: true,
    description: 'One line.',
    example: 'Read empty files without a crash',
    form: { minLength: 1, maxLength: LONGEST_TITLE },
    rule: (title) =>
      title.trim() === '' || title.length > LONGEST_TITLE
        ? `Expected a title of 1 to ${LONGEST_TITLE} characters.`
        : null,
  })
  title: string;

  @Text({
    required: true,
    description: 'What changed and why, in Markdown; may be empty.',
    example: 'An empty file has no first line.',
    form: { maxLength: LONGEST_BODY },
    rule: (body) => (body.length > LONGEST_BODY ? `Expected at most ${LONGEST_BODY} characters.` : null),
  })
  body: string;

  @Flag({ default: false, description: 'Whether it is not ready for review yet.', example: false })
  draft?: boolean;
}
