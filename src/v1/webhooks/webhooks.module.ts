import { Module } from '@nestjs/common';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { EventsModule } from '../events/events.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AgentServerWebhooksController } from './agent-server-webhooks.controller.js';
import { AgentServerWebhooksService } from './agent-server-webhooks.service.js';

@Module({
  imports: [AppConversationsModule, EventsModule, SandboxesModule],
  controllers: [AgentServerWebhooksController],
  providers: [AgentServerWebhooksService],
})
export class WebhooksModule {}
