import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { countRows } from '../../metrics/count-rows.js';
import { Metrics } from '../../metrics/metrics.js';

const COUNT = 'SELECT status AS value, count(*)::int AS count FROM sandboxes GROUP BY status';

/** Tells how many sandboxes there are. */
@Injectable()
export class SandboxGauges implements OnModuleInit {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.offer({
      name: 'slipway_sandboxes',
      help: 'Sandboxes of all hosts by status',
      label: 'status',
      read: () => countRows(this.dataSource, COUNT),
    });
  }
}
