import { Body, Controller, Param, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, documented, type DocumentedProblem } from '../../common/openapi/api-route.js';
import { OptionalBodyPipe } from '../../common/validation/validation.pipe.js';
import { SANDBOX_PROBLEMS } from '../app-conversations/api/dto/conversation-actions.dto.js';
import { ConversationIdDto } from '../app-conversations/api/dto/conversation.dto.js';
import { UNKNOWN_CONVERSATION } from '../events/events.dto.js';
import { CurrentSandbox, SandboxAuthenticated } from '../sandboxes/sandbox-key.guard.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import {
  OpenConversationPullRequestDto,
  OpenedPullRequestDto,
  OpenPullRequestDto,
} from './pull-request.dto.js';
import { PullRequestsService } from './pull-requests.service.js';

const GIT_PROBLEMS: (number | DocumentedProblem)[] = [
  {
    status: 401,
    code: 'invalid_git_token',
    detail: 'Invalid token. Please make sure it is a valid github token.',
  },
  documented(
    403,
    'The github token may not do this: Resource not accessible by personal access token.',
    'The git token lacks a permission',
  ),
  documented(
    409,
    'The git provider github refuses: No commits between main and fix/parser.',
    'No repository, no git token, or the git provider refuses',
  ),
  {
    status: 409,
    code: 'no_git_provider',
    detail: 'There is no github token: store one with POST /api/v1/secrets/git-providers.',
  },
  502,
  504,
];

const PROBLEMS: (number | DocumentedProblem)[] = [
  { status: 401, detail: 'Unauthorized', description: 'No key of a sandbox, or the git token is refused' },
  documented(
    404,
    'The sandbox has no conversation with this id.',
    'Unknown conversation, or one of another sandbox',
  ),
  ...GIT_PROBLEMS,
];
const INVALID_BRANCH = {
  loc: ['body', 'source_branch'],
  type: 'value_error',
  msg: 'Expected the name of a branch, such as main or feature/parser.',
};

@ApiTags('Webhooks')
@SandboxAuthenticated()
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
}

@ApiTags('Conversations')
@Controller('api/v1/app-conversations/:id/pull-request')
export class ConversationPullRequestController {
  constructor(private readonly pullRequests: PullRequestsService) {}

  @Post()
  @ApiRoute('open_conversation_pull_request', "Open a pull request for a conversation's commits", {
    description:
      'What the tool of the agent does: the branch is pushed from the sandbox, which is resumed for it, and a pull request is opened with your token. One that is open for the same branches already is answered as it is. The default branch is never pushed.',
    status: 201,
    answer: { type: OpenedPullRequestDto, description: 'The pull request' },
    optionalBody: OpenConversationPullRequestDto,
    examples: { default: { summary: 'As the conversation suggests', value: {} } },
    problems: [UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, ...GIT_PROBLEMS],
    invalid: INVALID_BRANCH,
  })
  async open(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body(new OptionalBodyPipe(OpenConversationPullRequestDto))
    body: Partial<OpenConversationPullRequestDto>,
  ): Promise<OpenedPullRequestDto> {
    return this.pullRequests.openForUser(userId, id, body);
  }
}
