import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { PullRequestsController } from './pull-requests.controller.js';
import { PullRequestsService } from './pull-requests.service.js';

/** Pull requests that the service opens for agents. */
@Module({
  imports: [AppConversationsModule, GitProvidersModule, SandboxesModule],
  controllers: [PullRequestsController],
  providers: [PullRequestsService],
})
export class PullRequestsModule {}
