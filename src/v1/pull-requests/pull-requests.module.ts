import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { PullRequestConversations, PullRequestsService } from './pull-requests.service.js';
import { PullRequestsController } from './pull-requests.controller.js';

/** Pull requests that agents have opened. */
@Module({
  imports: [GitProvidersModule, SandboxesModule],
  controllers: [PullRequestsController],
  providers: [PullRequestsService, PullRequestConversations],
})
export class PullRequestsModule {}
