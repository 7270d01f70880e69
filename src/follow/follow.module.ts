import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { OutboundWebhooksModule } from '../outbound-webhooks/outbound-webhooks.module.js';
import { AppConversationsModule } from '../v1/app-conversations/app-conversations.module.js';
import { EventsModule } from '../v1/events/events.module.js';
import { FollowRoundsService } from './follow-rounds.service.js';
import { FollowWorker } from './follow.worker.js';
import { RoundTalk } from './round-talk.js';

@Module({
  imports: [AppConversationsModule, EventsModule, GitProvidersModule, OutboundWebhooksModule],
  providers: [FollowRoundsService, FollowWorker, RoundTalk],
})
export class FollowModule {}
