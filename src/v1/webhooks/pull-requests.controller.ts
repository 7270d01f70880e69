import { Body, Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { CurrentSandbox } from '../sandboxes/current-sandbox.decorator.js';
import { SandboxAuthenticated } from '../sandboxes/sandbox-authenticated.decorator.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-keys.js';
import { OpenPullRequestDto } from './dto/open-pull-request.dto.js';
import type { OpenedPullRequestDto } from './dto/opened-pull-request.dto.js';
import { OpenPullRequestOperation } from './pull-requests.operations.js';
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
