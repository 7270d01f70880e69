import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { LeasedWork } from '@slipway/database/leased-worker.js';
import { poolUse } from '@slipway/database/postgres-options.js';
import { type Instrument, Metrics } from '@slipway/telemetry/metrics.js';
import { ERROR_CODES, type ErrorCode, isErrorCode } from '../common/errors/domain-error.js';
import { productVersion } from '../common/product.js';

/** Runs a statement that selects `value` (text) and `count` (int). */
export async function countRows(dataSource: DataSource, statement: string): Promise<Map<string, number>> {
  const rows = await dataSource.query<{ value: string; count: number }[]>(statement);
  return new Map(rows.map(({ value, count }) => [value, count]));
}

@Injectable()
export class ProgramMetrics implements OnModuleInit {
  private readonly problems: Instrument<{ code: readonly ErrorCode[] }>;

  constructor(
    private readonly metrics: Metrics,
    private readonly work: LeasedWork,
    private readonly dataSource: DataSource,
  ) {
    this.problems = metrics.addCounter({
      name: 'slipway_http_problems_total',
      help: 'Problem documents that were sent, by their code; sandbox_limit is a request refused for its quota',
      labels: { code: ERROR_CODES },
    });
  }

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_build_info',
      help: 'Always 1; the version is a label',
      label: 'version',
      read: async () => new Map([[productVersion(), 1]]),
    });
    this.metrics.addGauge({
      name: 'slipway_database_connections',
      help: 'Connections of the pool, the most that there may be, and what waits for one',
      label: 'state',
      read: async () => new Map(Object.entries(poolUse(this.dataSource))),
    });
    this.metrics.addSamples({
      name: 'slipway_jobs',
      help: 'Rows to be worked on, by their queue: waiting for a worker or for another attempt, or active',
      scope: 'database',
      labels: ['queue', 'state'],
      read: async () =>
        [...(await this.work.backlogs())].flatMap(([queue, { due, later, active }]) => [
          { labels: { queue, state: 'waiting' }, value: due + later },
          { labels: { queue, state: 'active' }, value: active },
        ]),
    });
    this.metrics.addGauge({
      name: 'slipway_jobs_oldest_waiting_seconds',
      help: 'For how long the row that is overdue for longest has been waiting for a worker',
      scope: 'database',
      label: 'queue',
      read: async () =>
        new Map([...(await this.work.backlogs())].map(([queue, each]) => [queue, each.oldestDueSeconds])),
    });
  }

  showRequestsUnderWay(read: () => number): void {
    this.metrics.addSamples({
      name: 'slipway_http_requests_in_flight',
      help: 'Requests that are being worked on, streams aside',
      labels: [],
      read: async () => [{ labels: {}, value: read() }],
    });
  }

  problemSent(code: string): void {
    if (isErrorCode(code)) {
      this.problems.record({ code });
    }
  }
}
