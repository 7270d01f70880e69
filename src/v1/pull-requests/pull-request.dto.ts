import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Flag } from '../../common/validation/number-fields.js';
import { Identifier, Text } from '../../common/validation/text-fields.js';
import type { OpenedChangeRequest } from '../../git-providers/git-provider.js';

const MAX_LENGTH = 250;

/** What git refuses in names of branches (git-check-ref-format), and a leading dash, which reads as an option. */
const REFUSED = [/^[-./@]$|^[-./]/, /[./]$|\.lock$/, /\.\.|\/\/|\/\.|\.lock\/|@\{/, /[\p{Cc}\s~^:?*[\\]/u];

/** The sentence against a text that cannot name a branch, or null. */
export function branchNameProblem(name: string): string | null {
  if (name === '' || name.length > MAX_LENGTH) {
    return `Expected the name of a branch, of 1 to ${MAX_LENGTH} characters.`;
  }
  return REFUSED.some((pattern) => pattern.test(name))
    ? 'Expected the name of a branch such as fix/parser.'
    : null;
}

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

/** Answer of `POST /api/v1/webhooks/pull-requests`. */
@ApiSchema({ name: 'OpenedPullRequest' })
export class OpenedPullRequestDto implements OpenedChangeRequest {
  @ApiProperty({ type: 'integer', example: 17 })
  number: number;

  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' })
  url: string;
}
