import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { OutboundWebhooksModule } from '../../outbound-webhooks/outbound-webhooks.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { PullRequestsController } from './pull-requests.controller.js';
import { PullRequestsService } from './pull-requests.service.js';

@Module({
  imports: [AppConversationsModule, GitProvidersModule, SandboxesModule, OutboundWebhooksModule],
  controllers: [PullRequestsController],
  providers: [PullRequestsService],
})
export class PullRequestsModule {}
