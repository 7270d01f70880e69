import { Body, Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, type DocumentedProblem } from '../../common/openapi/api-route.js';
import { CurrentSandbox, SandboxAuthenticated } from '../sandboxes/sandbox-key.guard.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import { OpenedPullRequestDto, OpenPullRequestDto } from './pull-request.dto.js';
import { PullRequestsService } from './pull-requests.service.js';

const PROBLEMS: (number | DocumentedProblem)[] = [
  { status: 401, detail: 'Unauthorized', description: 'No key of a sandbox, or the git token is refused' },
  {
    status: 401,
    code: 'invalid_git_token',
    detail: 'Invalid token. Please make sure it is a valid github token.',
  },
  {
    status: 403,
    detail: 'The github token may not do this: Resource not accessible by personal access token.',
    description: 'The git token lacks a permission',
  },
  {
    status: 404,
    detail: 'The sandbox has no conversation with this id.',
    description: 'Unknown conversation, or one of another sandbox',
  },
  {
    status: 409,
    code: 'conflict',
    detail: 'The git provider github refuses: No commits between main and fix/parser.',
    description: 'No repository, no git token, or the git provider refuses',
  },
  {
    status: 409,
    code: 'no_git_provider',
    detail: 'There is no github token: store one with POST /api/add-git-providers.',
  },
  502,
  504,
];

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
    invalid: {
      loc: ['body', 'source_branch'],
      type: 'value_error',
      msg: 'Expected the name of a branch such as fix/parser.',
    },
  })
  async open(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() body: OpenPullRequestDto,
  ): Promise<OpenedPullRequestDto> {
    return this.pullRequests.open(sandbox, body);
  }
}
