import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Metrics } from '../../../metrics/metrics.js';
import { StartTaskQueries } from '../start-task.queries.js';

/** Shows operators how starts of conversations are going. */
@Injectable()
export class StartMetrics implements OnModuleInit {
  constructor(
    private readonly tasks: StartTaskQueries,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_conversation_starts',
      help: 'Starts of conversations by status: those under way, and those that ended within the last hour',
      label: 'status',
      read: () => this.tasks.countRecentByStatus(),
    });
  }
}
