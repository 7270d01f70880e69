import { Injectable, type OnModuleInit } from '@nestjs/common';
import { CONVERSATION_STATUSES } from '@slipway/agent-protocol/conversation-api.js';
import { Metrics, withZeros } from '../../observability/metrics.js';
import { FollowLeaseRepository } from '../events/follow/follow-lease.repository.js';
import { START_TASK_STATUSES } from './start-task.entity.js';
import { StartTaskQueries } from './start-task.queries.js';

/** `unknown`: nothing has been read of it yet. */
const EXECUTION_STATUSES = [...CONVERSATION_STATUSES, 'unknown'];

@Injectable()
export class ConversationMetrics implements OnModuleInit {
  constructor(
    private readonly leases: FollowLeaseRepository,
    private readonly startTasks: StartTaskQueries,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_conversations',
      help: 'Conversations in running sandboxes by what their agents do',
      scope: 'database',
      label: 'execution_status',
      read: async () => withZeros(EXECUTION_STATUSES, await this.leases.countRunning()),
    });
    this.metrics.addGauge({
      name: 'slipway_conversation_starts',
      help: 'Starts of conversations by status: those under way, and those that ended within the last hour',
      scope: 'database',
      label: 'status',
      read: async () => withZeros(START_TASK_STATUSES, await this.startTasks.countRecentByStatus()),
    });
    this.metrics.addGauge({
      name: 'slipway_conversation_starts_waiting',
      help: 'Starts that wait for a place within the quota of their user, or for their sandbox to run',
      scope: 'database',
      label: 'waits_for',
      read: async () =>
        new Map((await this.startTasks.waiting()).map(({ waitsFor, count }) => [waitsFor, count])),
    });
    this.metrics.addGauge({
      name: 'slipway_conversation_starts_oldest_wait_seconds',
      help: 'Time since the request for the start that has waited longest',
      scope: 'database',
      label: 'waits_for',
      read: async () =>
        new Map(
          (await this.startTasks.waiting()).map(({ waitsFor, oldestSeconds }) => [waitsFor, oldestSeconds]),
        ),
    });
  }
}
