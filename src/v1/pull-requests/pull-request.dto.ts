import { ApiProperty } from '@nestjs/swagger';
import { Flag } from '../../common/validation/number-fields.js';
import { Identifier, Text } from '../../common/validation/text-fields.js';
import type { OpenedChangeRequest } from '../../git-providers/git-provider.js';
import { isBranchName } from '../../git-providers/repository-name.js';

const MAX_BRANCH_LENGTH = 250;
export const MAX_TITLE_LENGTH = 256;
/** GitHub's limit. */
const MAX_BODY_LENGTH = 65_536;

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
    form: { minLength: 1, maxLength: MAX_BRANCH_LENGTH },
    rule: branchNameProblem,
  })
  source_branch: string;

  @Text({
    nullable: true,
    description: "Where the changes shall go; by default the repository's default branch.",
    example: 'main',
    form: { minLength: 1, maxLength: MAX_BRANCH_LENGTH },
    rule: branchNameProblem,
  })
  target_branch?: string | null;

  @Text({
    required: true,
    description: 'One line.',
    example: 'Read empty files without a crash',
    form: { minLength: 1, maxLength: MAX_TITLE_LENGTH },
    rule: titleProblem,
  })
  title: string;

  @Text({
    required: true,
    description: 'What changed and why, in Markdown; may be empty.',
    example: 'An empty file has no first line.',
    form: { maxLength: MAX_BODY_LENGTH },
    rule: bodyProblem,
  })
  body: string;

  @Flag({ default: false, description: 'Whether it is not ready for review yet.', example: false })
  draft?: boolean;
}

/** All that is left out is what the conversation suggests. */
export class OpenConversationPullRequestDto {
  @Text({
    nullable: true,
    description: "One line; by default the conversation's title.",
    example: 'Read empty files without a crash',
    form: { minLength: 1, maxLength: MAX_TITLE_LENGTH },
    rule: titleProblem,
  })
  title?: string | null;

  @Text({
    nullable: true,
    description: 'What changed and why, in Markdown.',
    example: 'An empty file has no first line.',
    form: { maxLength: MAX_BODY_LENGTH },
    rule: bodyProblem,
  })
  body?: string | null;

  @Flag({ default: false, description: 'Whether it is not ready for review yet.', example: false })
  draft?: boolean;

  @Text({
    nullable: true,
    description: 'The branch with the commits, which is pushed; by default the one that is checked out.',
    example: 'fix/parser',
    form: { minLength: 1, maxLength: MAX_BRANCH_LENGTH },
    rule: branchNameProblem,
  })
  source_branch?: string | null;

  @Text({
    nullable: true,
    description: "Where the changes shall go; by default the repository's default branch.",
    example: 'main',
    form: { minLength: 1, maxLength: MAX_BRANCH_LENGTH },
    rule: branchNameProblem,
  })
  target_branch?: string | null;
}

export class OpenedPullRequestDto implements OpenedChangeRequest {
  @ApiProperty({ type: 'integer', example: 17 })
  number: number;

  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' })
  url: string;
}

/** Says what is wrong with the name of a branch; null when it is valid. */
export function branchNameProblem(name: string): string | null {
  if (name === '' || name.length > MAX_BRANCH_LENGTH) {
    return `Expected the name of a branch, of 1 to ${MAX_BRANCH_LENGTH} characters.`;
  }
  return isBranchName(name) ? null : 'Expected the name of a branch such as fix/parser.';
}

function titleProblem(title: string): string | null {
  return title.trim() === '' || title.length > MAX_TITLE_LENGTH
    ? `Expected a title of 1 to ${MAX_TITLE_LENGTH} characters.`
    : null;
}

function bodyProblem(body: string): string | null {
  return body.length > MAX_BODY_LENGTH ? `Expected at most ${MAX_BODY_LENGTH} characters.` : null;
}
