import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import {
  type Instrument,
  Metrics,
  type NoLabels,
  type Sample,
  withZeros,
} from '@slipway/telemetry/metrics.js';
import { type DiskSpace, SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { BackendSweeper } from './lifecycle/backend-readiness.js';
import { SANDBOX_ROW_STATUSES } from './sandbox-status.js';
import { type SandboxCount, SandboxQueries } from './sandbox.queries.js';
import { WarmSandboxRepository } from './warm/warm-sandbox.repository.js';

const START_KINDS = ['start', 'resume'] as const;
type StartKind = (typeof START_KINDS)[number];

const WARM_STATUSES = ['starting', 'ready'];

const START_SECONDS = [0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300];

@Injectable()
export class SandboxMetrics implements OnModuleInit {
  private readonly starts: Instrument<{ kind: typeof START_KINDS }>;
  private readonly startFailures: Instrument<{ kind: typeof START_KINDS }>;
  private readonly evictions: Instrument<NoLabels>;

  constructor(
    private readonly queries: SandboxQueries,
    private readonly metrics: Metrics,
    private readonly backend: SandboxBackend,
    private readonly sweeper: BackendSweeper,
    private readonly config: AppConfig,
    private readonly warm: WarmSandboxRepository,
  ) {
    this.starts = metrics.addHistogram({
      name: 'slipway_sandbox_start_seconds',
      help: 'Time from the request to RUNNING of a sandbox that was started, or resumed after a pause or error',
      labels: { kind: START_KINDS },
      buckets: START_SECONDS,
    });
    this.startFailures = metrics.addCounter({
      name: 'slipway_sandbox_start_failures_total',
      help: 'Starts and resumes of sandboxes that ended with ERROR',
      labels: { kind: START_KINDS },
    });
    this.evictions = metrics.addCounter({
      name: 'slipway_sandbox_quota_evictions_total',
      help: 'Idle sandboxes that were paused to make room for another one of their user',
      labels: {},
    });
  }

  onModuleInit(): void {
    this.metrics.addSamples({
      name: 'slipway_sandboxes',
      help: 'Sandboxes of all hosts by status and backend; from 10,000 on counted once a minute',
      scope: 'database',
      labels: ['status', 'backend'],
      read: async () => toSamples(await this.queries.counts(), this.config.sandboxes.backend),
    });
    this.metrics.addGauge({
      name: 'slipway_warm_sandboxes',
      help: 'Sandboxes of all hosts that are started, or being started, before anybody asks for one',
      scope: 'database',
      label: 'status',
      read: async () => withZeros(WARM_STATUSES, await this.warm.countByStatus()),
    });
    this.metrics.addGauge({
      name: 'slipway_sandbox_disk_bytes',
      help: 'The disk that the sandboxes of this host lie on',
      label: 'state',
      read: async () => bytesByState(await this.backend.disk()),
    });
    this.metrics.addGauge({
      name: 'slipway_sandbox_leftovers',
      help: 'Removed sandboxes of this host of which some files cannot be removed',
      label: 'backend',
      read: async () => {
        const { leftovers } = this.sweeper;
        return new Map(leftovers === null ? [] : [[this.backend.kind, leftovers]]);
      },
    });
  }

  started(kind: StartKind, milliseconds: number): void {
    this.starts.record({ kind }, Math.max(0, milliseconds) / 1000);
  }

  startFailed(kind: StartKind): void {
    this.startFailures.record({ kind });
  }

  evicted(count: number): void {
    this.evictions.record({}, count);
  }
}

/** Adds a 0 for each status of the configured backend that no sandbox has. */
function toSamples(counts: readonly SandboxCount[], backend: string): Sample[] {
  const zeros = SANDBOX_ROW_STATUSES.filter(
    (status) => !counts.some((each) => each.status === status && each.backend === backend),
  ).map((status) => ({ status, backend, count: 0 }));
  return [...zeros, ...counts].map((each) => ({
    labels: { status: each.status, backend: each.backend },
    value: each.count,
  }));
}

/** Empty when nothing is known: a zero would look like a full disk. */
function bytesByState(space: DiskSpace | null): Map<string, number> {
  return new Map(
    space === null
      ? []
      : [
          ['free', space.freeBytes],
          ['used', space.totalBytes - space.freeBytes],
        ],
  );
}
