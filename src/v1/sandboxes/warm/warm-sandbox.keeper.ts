import { Injectable, Logger } from '@nestjs/common';
import pLimit from 'p-limit';
import type { EntityManager } from 'typeorm';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import { type Instrument, Metrics } from '@slipway/telemetry/metrics.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxBackend, type WarmStarts } from '@slipway/sandboxes/sandbox-backend.js';
import { BackendReadiness } from '../lifecycle/backend-readiness.js';
import type { Sandbox } from '../sandbox.entity.js';
import { newSandboxId } from '../session-key.js';
import { type WantedSandbox, type WarmPlan, WarmPrograms } from './warm-programs.js';
import { type ClaimedSandbox, type WarmSandbox, WarmSandboxRepository } from './warm-sandbox.repository.js';

const EVERY_MS = 1_000;
/** A start that has just claimed one needs the processors more than its replacement does. */
const AFTER_CLAIM_MS = 750;
/** Images seldom change, and waiting sandboxes seldom end. */
const CHECK_EVERY_MS = 5_000;
const MAX_FILLS = 2;
/** A replica of another version or configuration may be about to end, and this one must not fight it. */
const OUTDATED_GRACE_MS = 30_000;
/** An unfinished start this old belongs to a process that died or hangs. */
const ABANDONED_MS = 15 * 60_000;
/** How long a row may exist without its program: another replica may be starting it. */
const NOT_RUNNING_YET_MS = 2 * 60_000;
const LOST_HOST_SECONDS = 600;

const OUTCOMES = ['warm', 'none_ready', 'not_suitable'] as const;

/** Keeps `SANDBOX_WARM` sandboxes of each specification. The database has their state, so a restart keeps them. */
@Injectable()
export class WarmSandboxKeeper extends BackgroundLoop {
  private readonly outcomes: Instrument<{ outcome: typeof OUTCOMES }>;
  private readonly stopped = new AbortController();
  private readonly short = new Set<string>();
  private readonly starting = new Set<string>();
  private readonly filling = new Set<string>();
  private readonly fillLimit = pLimit(MAX_FILLS);
  private plans: readonly WarmPlan[] = [];
  /** Sandboxes of these plans may be handed out: a check has shown that they have no owner. */
  private offered: readonly WarmPlan[] = [];
  private checkedAt = -Infinity;
  private claimedAt = -Infinity;
  private isDone = false;

  constructor(
    private readonly repository: WarmSandboxRepository,
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
    private readonly programs: WarmPrograms,
    private readonly config: AppConfig,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    super(EVERY_MS, new Logger('Sandboxes'), 'failed to keep warm sandboxes');
    this.outcomes = metrics.addCounter({
      name: 'slipway_warm_claims_total',
      help: 'New sandboxes while SANDBOX_WARM is set: a warm one, none was ready, or none that suits the request',
      labels: { outcome: OUTCOMES },
    });
  }

  /** Takes a matching warm sandbox; null when there is none. Give it an owner and a key in the same transaction. */
  async claim(
    manager: EntityManager,
    spec: SandboxSpec,
    wanted: WantedSandbox,
    hostId?: string,
  ): Promise<(ClaimedSandbox & Pick<Sandbox, 'egressMode'>) | null> {
    if (this.config.sandboxes.warm === 0) {
      return null;
    }
    const plan = this.offered.find((each) => each.spec.id === spec.id);
    const suited = plan ? this.programs.suits(plan, spec, wanted) : null;
    if (!plan || suited === null) {
      this.outcomes.record({ outcome: 'not_suitable' });
      return null;
    }
    const { fingerprint } = plan;
    const claimed = await this.repository.claim(manager, fingerprint, hostId);
    this.outcomes.record({ outcome: claimed === null ? 'none_ready' : 'warm' });
    this.claimedAt = performance.now();
    this.short.add(fingerprint);
    this.programs.backOff.succeeded(fingerprint);
    return claimed && { ...claimed, ...suited };
  }

  /** The next process finishes, or drops, what is being started. */
  override async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort(new Error('the service is stopping'));
    await super.beforeApplicationShutdown();
  }

  override async now(): Promise<void> {
    this.checkedAt = -Infinity;
    this.claimedAt = -Infinity;
    await super.now();
  }

  protected async work(): Promise<void> {
    const { warm } = this.backend;
    if (this.isDone || warm === null || !(await this.readiness.isReady())) {
      return;
    }
    if (performance.now() >= this.checkedAt + CHECK_EVERY_MS) {
      this.plans = this.config.sandboxes.warm === 0 ? [] : await this.programs.plan(warm);
      await this.check();
      this.offered = this.plans;
      // Another process may have claimed or dropped some.
      this.plans.forEach(({ fingerprint }) => this.short.add(fingerprint));
      this.checkedAt = performance.now();
    }
    for (const plan of this.plans) {
      const { fingerprint } = plan;
      if (this.short.has(fingerprint) && !this.filling.has(fingerprint)) {
        this.filling.add(fingerprint);
        this.beside(
          this.fillLimit(() => this.fill(warm, plan)).finally(() => this.filling.delete(fingerprint)),
        );
      }
    }
  }

  private async check(): Promise<void> {
    await this.repository.forgetLost(LOST_HOST_SECONDS);
    const rows = await this.repository.ofHost();
    this.isDone = rows.length === 0 && this.config.sandboxes.warm === 0;
    const results = await Promise.allSettled(
      rows.map(async (row) => {
        const reason = await this.uselessness(row, rows);
        if (reason !== null) {
          await this.programs.remove(row, reason);
        }
      }),
    );
    const failure = results.find((result) => result.status === 'rejected');
    if (failure) {
      throw failure.reason;
    }
  }

  /** Why a row is of no use, as the message of a log line; null when it is wanted. */
  private async uselessness(row: WarmSandbox, rows: readonly WarmSandbox[]): Promise<string | null> {
    const ageMs = this.clock.now() - row.createdAt.getTime();
    if (
      row.backend !== this.backend.kind ||
      !this.plans.some((plan) => plan.fingerprint === row.fingerprint)
    ) {
      return ageMs < OUTDATED_GRACE_MS && this.config.sandboxes.warm > 0
        ? null
        : 'outdated warm sandbox removed';
    }
    const older = rows.filter((each) => each.fingerprint === row.fingerprint).indexOf(row);
    if (older >= this.config.sandboxes.warm) {
      return 'surplus warm sandbox removed';
    }
    if (this.starting.has(row.id)) {
      return null;
    }
    const { state, liveness } = await this.programs.look(row.id);
    if (row.status === 'STARTING') {
      if (liveness === 'unassigned') {
        await this.repository.markReady(row.id);
        return null;
      }
      const allowedMs = state === 'running' ? ABANDONED_MS : NOT_RUNNING_YET_MS;
      return ageMs < allowedMs ? null : 'abandoned warm sandbox removed';
    }
    if (state === 'running') {
      return liveness === 'assigned' ? 'warm sandbox has an owner' : null;
    }
    this.programs.backOff.failed(row.fingerprint);
    return 'warm sandbox ended by itself';
  }

  /** One after the other. Never throws. */
  private async fill(warm: WarmStarts, plan: WarmPlan): Promise<void> {
    const { spec, fingerprint } = plan;
    try {
      while (this.mayStart(fingerprint)) {
        const row = { id: newSandboxId(), specId: spec.id, fingerprint, backend: this.backend.kind };
        if (!(await this.repository.reserve(row, this.config.sandboxes.warm))) {
          this.short.delete(fingerprint);
          return;
        }
        this.starting.add(row.id);
        await this.programs.start(warm, plan, { id: row.id, stopped: this.stopped.signal });
        this.starting.delete(row.id);
      }
    } catch (error) {
      this.logger.error('failed to keep warm sandboxes', errorStack(error));
    }
  }

  private mayStart(fingerprint: string): boolean {
    return (
      !this.stopped.signal.aborted &&
      performance.now() >= this.claimedAt + AFTER_CLAIM_MS &&
      this.programs.backOff.allows(fingerprint)
    );
  }
}
