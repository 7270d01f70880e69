import { Body, Controller, DefaultValuePipe, Param, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, badInput, type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { GitProviderError } from '@slipway/git-providers/git-provider.js';
import { gitProviderProblem, invalidGitToken, noTokenOf } from '../../git-providers/git-provider-problem.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { SANDBOX_PROBLEMS } from '../app-conversations/api/dto/conversation-actions.dto.js';
import { NeedsAccess } from '../events/conversation-access.guard.js';
import { ConversationIdDto, UNKNOWN_CONVERSATION } from '../events/events.dto.js';
import { unknownToSandbox } from '../events/events.service.js';
import {
  CurrentSandbox,
  ActsForOwner,
  noSandboxKey,
  type SandboxKeyHolder,
} from '../sandboxes/sandbox-key.guard.js';
import {
  OpenConversationPullRequestDto,
  OpenedPullRequestDto,
  OpenPullRequestDto,
  PushBranchDto,
  PushedBranchDto,
} from './pull-request.dto.js';
import { PullRequestsService } from './pull-requests.service.js';

const REFUSAL = new GitProviderError('unsupported', { reason: 'No commits between main and fix/parser' });
const TOO_LITTLE = new GitProviderError('insufficient_scope', {
  reason: 'Resource not accessible by personal access token',
});
const GIT_PROBLEMS: (number | DocumentedProblem)[] = [
  thrown(invalidGitToken('github')),
  thrown(gitProviderProblem('github', TOO_LITTLE), 'The git token lacks a permission'),
  thrown(gitProviderProblem('github', REFUSAL), 'No repository, no git token, or the git provider refuses'),
  thrown(noTokenOf('github', 'conflict')),
  502,
  504,
];

const PROBLEMS: (number | DocumentedProblem)[] = [
  thrown(noSandboxKey(), 'No key of a sandbox, or the git token is refused'),
  thrown(unknownToSandbox(), 'Unknown conversation, or one of another sandbox'),
  ...GIT_PROBLEMS,
];
const INVALID_BRANCH = badInput(
  'body.source_branch',
  'Expected the name of a branch, such as main or feature/parser.',
);

@ApiTags('Webhooks')
@ActsForOwner()
@Controller('api/v1/webhooks/pull-requests')
export class PullRequestsController {
  constructor(private readonly pullRequests: PullRequestsService) {}

  @Post()
  @ApiRoute('open_pull_request', 'Open a pull request for a conversation', {
    description:
      "For the agent server in a sandbox, with the sandbox's key. Repository, provider and token are those of the conversation and its owner. A pull request that is open for the same branches already is answered as it is. Its number is added to the conversation's `pr_number`.",
    status: 201,
    answer: { type: OpenedPullRequestDto, description: 'The pull request' },
    problems: PROBLEMS,
    invalid: INVALID_BRANCH,
  })
  async open(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() body: OpenPullRequestDto,
  ): Promise<OpenedPullRequestDto> {
    return this.pullRequests.openForAgent(sandbox, body);
  }

  @Post('push')
  @ApiRoute('push_branch', 'Push a branch of a conversation to where its user may push', {
    description:
      "For the agent server in a sandbox, with the sandbox's key, after the host has denied a push. The branch is pushed from the sandbox; where the user has no right to push to the repository, it goes to a fork of theirs, which is made if there is none. A pull request of the conversation is opened from there.",
    status: 200,
    answer: { type: PushedBranchDto, description: 'Where the branch is' },
    problems: PROBLEMS,
    invalid: badInput('body.branch', 'Expected the name of a branch, such as main or feature/parser.'),
  })
  async push(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() body: PushBranchDto,
  ): Promise<PushedBranchDto> {
    return this.pullRequests.pushForAgent(sandbox, body);
  }
}

@ApiTags('Conversations')
@Controller('api/v1/app-conversations/:id/pull-request')
export class ConversationPullRequestController {
  constructor(private readonly pullRequests: PullRequestsService) {}

  @Post()
  @NeedsAccess('own')
  @ApiRoute('open_conversation_pull_request', "Open a pull request for a conversation's commits", {
    description:
      'What the tool of the agent does: the branch is pushed from the sandbox, which is resumed for it, and a pull request is opened with your token. One that is open for the same branches already is answered as it is. The default branch is never pushed. Where you may not push to the repository, the branch goes to a fork of yours, which is made if there is none and `fork` is not `never`, and the pull request is opened across.',
    status: 201,
    answer: { type: OpenedPullRequestDto, description: 'The pull request' },
    optionalBody: OpenConversationPullRequestDto,
    problems: [UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, ...GIT_PROBLEMS],
    invalid: INVALID_BRANCH,
  })
  async open(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body(new DefaultValuePipe({}), new InputValidationPipe(OpenConversationPullRequestDto))
    body: Partial<OpenConversationPullRequestDto>,
  ): Promise<OpenedPullRequestDto> {
    return this.pullRequests.openForUser(userId, id, body);
  }
}
