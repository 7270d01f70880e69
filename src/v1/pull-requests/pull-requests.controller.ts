import { Body, Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { CurrentSandbox, SandboxAuthenticated } from '../sandboxes/sandbox-key.guard.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import { OpenPullRequestDto, type OpenedPullRequestDto } from './pull-request.dto.js';
import { OpenPullRequestOperation } from './pull-requests.openapi.js';
import { PullRequestsService } from './pull-requests.service.js';

@ApiTags('Webhooks')
@SandboxAuthenticated()
@Controller('api/v1/webhooks/pull-requests')
export class PullRequestsController {
  constructor(private readonly pullRequests: PullRequestsService) {}

  @Post()
  @OpenPullRequestOperation()
  async open(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() body: OpenPullRequestDto,
  ): Promise<OpenedPullRequestDto> {
    return this.pullRequests.open(sandbox, body);
  }
}
