import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module.js';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { OutboundWebhooksModule } from '../../outbound-webhooks/outbound-webhooks.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { EventsModule } from '../events/events.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { BranchPusher } from './branch-pusher.js';
import { ConversationPullRequestController, PullRequestsController } from './pull-requests.controller.js';
import { PullRequestsService } from './pull-requests.service.js';

@Module({
  imports: [
    AgentServersModule,
    AuthModule,
    AppConversationsModule,
    EventsModule,
    GitProvidersModule,
    SandboxesModule,
    OutboundWebhooksModule,
  ],
  controllers: [ConversationPullRequestController, PullRequestsController],
  providers: [BranchPusher, PullRequestsService],
  exports: [PullRequestsService],
})
export class PullRequestsModule {}
