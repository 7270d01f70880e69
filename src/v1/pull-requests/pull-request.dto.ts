import { ApiProperty } from '@nestjs/swagger';
import type { FieldOptions } from '@slipway/api/validation/field.js';
import { Shown } from '@slipway/api/openapi/responses.js';
import { Flag, Identifier, Text } from '@slipway/api/validation/field-decorators.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import type { OpenedChangeRequest } from '@slipway/git-providers/git-provider.js';
import { BranchName } from '../../git-providers/repository-fields.js';

export const MAX_PULL_REQUEST_TITLE = 256;
/** GitHub's limit. */
const MAX_BODY_LENGTH = 65_536;

function Title(description: string, presence: FieldOptions): PropertyDecorator {
  return Text(description, {
    ...presence,
    example: 'Read empty files without a crash',
    form: { minLength: 1, maxLength: MAX_PULL_REQUEST_TITLE, pattern: String.raw`\S` },
    rule: (title) =>
      title.trim() === '' || title.length > MAX_PULL_REQUEST_TITLE
        ? `Expected a title of 1 to ${MAX_PULL_REQUEST_TITLE} characters.`
        : null,
  });
}

function Body(description: string, presence: FieldOptions): PropertyDecorator {
  const example = 'An empty file has no first line.';
  return Text(description, { ...presence, example, maxLength: MAX_BODY_LENGTH });
}

function Draft(): PropertyDecorator {
  return Flag('Whether it is not ready for review yet.', { default: false, example: false });
}

function TargetBranch(): PropertyDecorator {
  const description = "Where the changes shall go; by default the repository's default branch.";
  return BranchName(description, { nullable: true });
}

@NoOtherMembers()
export class OpenPullRequestDto {
  @Identifier('The conversation that works on the repository.', {
    required: true,
    example: '8d7b2f7e-1c0a-4f3f-9b6f-2b0c5d4e3a21',
  })
  conversation_id: string;

  @BranchName('The branch with the changes, pushed already.', { required: true, example: 'fix/parser' })
  source_branch: string;

  @TargetBranch() target_branch?: string | null;
  @Title('One line.', { required: true }) title: string;
  @Body('What changed and why, in Markdown; may be empty.', { required: true }) body: string;
  @Draft() draft?: boolean;
}

@NoOtherMembers()
export class PushBranchDto {
  @Identifier('The conversation that works on the repository.', {
    required: true,
    example: '8d7b2f7e-1c0a-4f3f-9b6f-2b0c5d4e3a21',
  })
  conversation_id: string;

  @BranchName('The branch with the commits.', { required: true, example: 'fix/parser' }) branch: string;

  @Text('A folder of the repository in the sandbox.', {
    required: true,
    maxLength: 4_096,
    example: '/workspace/app',
  })
  directory: string;
}

export class PushedBranchDto {
  @Shown('Where the branch is now.', 'ada/app') repository: string;
  @ApiProperty({ example: 'Pushed to ada/app.' }) output: string;
}

/** All that is left out is what the conversation suggests. */
@NoOtherMembers()
export class OpenConversationPullRequestDto {
  @Title("One line; by default the conversation's title.", { nullable: true }) title?: string | null;
  @Body('What changed and why, in Markdown.', { nullable: true }) body?: string | null;
  @Draft() draft?: boolean;

  @BranchName('The branch with the commits, which is pushed; by default the one that is checked out.', {
    nullable: true,
    example: 'fix/parser',
  })
  source_branch?: string | null;

  @TargetBranch() target_branch?: string | null;
}

export class OpenedPullRequestDto implements OpenedChangeRequest {
  @ApiProperty({ type: 'integer', example: 17 }) number: number;
  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' }) url: string;
}
