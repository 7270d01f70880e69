import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { countRows, Metrics } from '../../../metrics/metrics.js';

const RECENT = `
  SELECT status AS value, count(*)::int AS count FROM app_conversation_start_tasks
  WHERE status NOT IN ('READY', 'ERROR') OR updated_at > now() - interval '1 hour'
  GROUP BY status`;

/** Tells how starts of conversations go. */
@Injectable()
export class StartMetrics implements OnModuleInit {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_conversation_starts',
      help: 'Starts of conversations by status: those under way, and those that ended within the last hour',
      label: 'status',
      read: () => countRows(this.dataSource, RECENT),
    });
  }
}
