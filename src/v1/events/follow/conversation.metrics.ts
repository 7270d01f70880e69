import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { countRows, Metrics } from '../../../metrics/metrics.js';

const COUNT = `
  SELECT coalesce(f.execution_status, 'unknown') AS value, count(*)::int AS count
  FROM followed_conversations f JOIN sandboxes s ON s.id = f.sandbox_id
  WHERE s.status = 'RUNNING'
  GROUP BY f.execution_status`;

/** Tells what agents are doing. */
@Injectable()
export class ConversationMetrics implements OnModuleInit {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_conversations',
      help: 'Conversations in running sandboxes by what their agents do',
      label: 'execution_status',
      read: () => countRows(this.dataSource, COUNT),
    });
  }
}
