import { ApiProperty } from '@nestjs/swagger';
import { Flag } from '../../common/validation/number-fields.js';
import { Identifier, Text } from '../../common/validation/text-fields.js';
import type { OpenedChangeRequest } from '../../git-providers/git-provider.js';
import { BranchName } from '../../git-providers/repository-fields.js';

export const MAX_PULL_REQUEST_TITLE = 256;
/** GitHub's limit. */
const MAX_BODY_LENGTH = 65_536;

export class OpenPullRequestDto {
  @Identifier('The conversation that works on the repository.', {
    required: true,
    example: '8d7b2f7e-1c0a-4f3f-9b6f-2b0c5d4e3a21',
  })
  conversation_id: string;

  @BranchName('The branch with the changes, pushed already.', {
    required: true,
    example: 'fix/parser',
  })
  source_branch: string;

  @BranchName("Where the changes shall go; by default the repository's default branch.", {
    nullable: true,
  })
  target_branch?: string | null;

  @Text('One line.', {
    required: true,
    example: 'Read empty files without a crash',
    form: { minLength: 1, maxLength: MAX_PULL_REQUEST_TITLE, pattern: String.raw`\S` },
    rule: titleProblem,
  })
  title: string;

  @Text('What changed and why, in Markdown; may be empty.', {
    required: true,
    example: 'An empty file has no first line.',
    form: { maxLength: MAX_BODY_LENGTH },
    rule: bodyProblem,
  })
  body: string;

  @Flag('Whether it is not ready for review yet.', { default: false, example: false }) draft?: boolean;
}

/** All that is left out is what the conversation suggests. */
export class OpenConversationPullRequestDto {
  @Text("One line; by default the conversation's title.", {
    nullable: true,
    example: 'Read empty files without a crash',
    form: { minLength: 1, maxLength: MAX_PULL_REQUEST_TITLE, pattern: String.raw`\S` },
    rule: titleProblem,
  })
  title?: string | null;

  @Text('What changed and why, in Markdown.', {
    nullable: true,
    example: 'An empty file has no first line.',
    form: { maxLength: MAX_BODY_LENGTH },
    rule: bodyProblem,
  })
  body?: string | null;

  @Flag('Whether it is not ready for review yet.', { default: false, example: false })
  draft?: boolean;

  @BranchName('The branch with the commits, which is pushed; by default the one that is checked out.', {
    nullable: true,
    example: 'fix/parser',
  })
  source_branch?: string | null;

  @BranchName("Where the changes shall go; by default the repository's default branch.", {
    nullable: true,
  })
  target_branch?: string | null;
}

export class OpenedPullRequestDto implements OpenedChangeRequest {
  @ApiProperty({ type: 'integer', example: 17 }) number: number;
  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' }) url: string;
}

function titleProblem(title: string): string | null {
  return title.trim() === '' || title.length > MAX_PULL_REQUEST_TITLE
    ? `Expected a title of 1 to ${MAX_PULL_REQUEST_TITLE} characters.`
    : null;
}

function bodyProblem(body: string): string | null {
  return body.length > MAX_BODY_LENGTH ? `Expected at most ${MAX_BODY_LENGTH} characters.` : null;
}
