import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Metrics } from '../../../metrics/metrics.js';
import { FollowedConversationRepository } from '../followed-conversation.repository.js';

/** Counts conversations by what their agents do. */
@Injectable()
export class ConversationMetrics implements OnModuleInit {
  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_conversations',
      help: 'Conversations in running sandboxes by what their agents do',
      label: 'execution_status',
      read: () => this.conversations.countRunning(),
    });
  }
}
