import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { ERROR_CODES, type ErrorCode } from '../common/errors/domain-error.js';
import { productVersion } from '../common/product.js';
import { poolUse } from '../database/data-source-options.js';
import { DurableJobs } from '../database/jobs/durable-jobs.js';
import { type Instrument, Metrics } from './metrics.js';

const JOB_STATES = ['waiting', 'active', 'failed'] as const;

@Injectable()
export class ProgramMetrics implements OnModuleInit {
  private readonly problems: Instrument<{ code: typeof ERROR_CODES }>;

  constructor(
    private readonly metrics: Metrics,
    private readonly jobs: DurableJobs,
    @InjectDataSource() private readonly dataSource: DataSource,
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
      help: 'Jobs by the kind of their queue: waiting for a worker or for another attempt, active, or failed for good within the hour',
      scope: 'database',
      labels: ['queue', 'state'],
      read: async () =>
        (await this.jobs.backlog()).flatMap((backlog) =>
          JOB_STATES.map((state) => ({ labels: { queue: backlog.kind, state }, value: backlog[state] })),
        ),
    });
    this.metrics.addGauge({
      name: 'slipway_jobs_oldest_waiting_seconds',
      help: 'For how long the job that is overdue for longest has been waiting for a worker',
      scope: 'database',
      label: 'queue',
      read: async () =>
        new Map((await this.jobs.backlog()).map(({ kind, oldestWaitSeconds }) => [kind, oldestWaitSeconds])),
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

  problemSent(code: ErrorCode): void {
    this.problems.record({ code });
  }
}
