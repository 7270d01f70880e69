import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Metrics } from '../../metrics/metrics.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import { StartTaskQueries } from './start-task.queries.js';

/** Shows operators what agents are doing, and how starts of conversations are going. */
@Injectable()
export class ConversationMetrics implements OnModuleInit {
  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly startTasks: StartTaskQueries,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_conversations',
      help: 'Conversations in running sandboxes by what their agents do',
      label: 'execution_status',
      read: () => this.conversations.countRunning(),
    });
    this.metrics.addGauge({
      name: 'slipway_conversation_starts',
      help: 'Starts of conversations by status: those under way, and those that ended within the last hour',
      label: 'status',
      read: () => this.startTasks.countRecentByStatus(),
    });
  }
}
