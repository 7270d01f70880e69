import { isDeepStrictEqual } from 'node:util';
import { Injectable, Logger } from '@nestjs/common';
import pLimit from 'p-limit';
import type { EntityManager } from 'typeorm';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '../../../common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import { type Instrument, Metrics } from '../../../observability/metrics.js';
import { AgentServerClient, type Liveness } from '../../agent-servers/agent-server.client.js';
import { type SandboxSpec, SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import {
  removeSandbox,
  SandboxBackend,
  type SandboxFacts,
  type WarmStarts,
  type WarmTemplate,
} from '../backends/sandbox-backend.js';
import { BackendReadiness } from '../lifecycle/backend-readiness.js';
import { SandboxEgress } from '../lifecycle/egress-access.js';
import { LaunchPlanner } from '../lifecycle/launch-plan.js';
import { AgentServerProbe, StartDeadline } from '../lifecycle/sandbox-starter.js';
import type { SandboxOverrides } from '../sandbox.entity.js';
import { newSandboxId } from '../session-key.js';
import { type WarmSandbox, WarmSandboxRepository } from './warm-sandbox.repository.js';

const FIRST_MS = 2_000;
const MOST_MS = 5 * 60_000;
/** After this long without a failure, the next one counts as the first. */
const FORGET_MS = 15 * 60_000;

interface Failures {
  count: number;
  lastAt: number;
  retryAt: number;
}

/** Delays the next warm sandbox after one that failed, or ended by itself. */
export class WarmBackOff {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  allows(fingerprint: string): boolean {
    return this.clock.now() >= (this.failures.get(fingerprint)?.retryAt ?? 0);
  }

  failed(fingerprint: string): number {
    const now = this.clock.now();
    const known = this.failures.get(fingerprint);
    const before = known !== undefined && now - known.lastAt < FORGET_MS ? known.count : 0;
    const delayMs = Math.min(FIRST_MS * 2 ** before, MOST_MS);
    this.failures.set(fingerprint, { count: before + 1, lastAt: now, retryAt: now + delayMs });
    return delayMs;
  }

  succeeded(fingerprint: string): void {
    this.failures.delete(fingerprint);
  }
}

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

interface WarmPlan {
  spec: SandboxSpec;
  template: WarmTemplate;
  fingerprint: string;
}

const OUTCOMES = ['warm', 'none_ready', 'not_suitable'] as const;

/** Keeps `SANDBOX_WARM` sandboxes of each specification. The database has their state, so a restart keeps them. */
@Injectable()
export class WarmSandboxKeeper extends BackgroundLoop {
  private readonly backOff: WarmBackOff;
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
    private readonly specs: SandboxSpecs,
    private readonly planner: LaunchPlanner,
    private readonly egress: SandboxEgress,
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
    private readonly probe: AgentServerProbe,
    private readonly client: AgentServerClient,
    private readonly config: AppConfig,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    super(EVERY_MS, new Logger('Sandboxes'), 'failed to keep warm sandboxes');
    this.backOff = new WarmBackOff(clock);
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
    overrides: SandboxOverrides | null,
    hostId: string,
  ): Promise<string | null> {
    if (this.config.sandboxes.warm === 0) {
      return null;
    }
    const plan = this.offered.find((each) => each.spec.id === spec.id);
    if (!plan || !isDeepStrictEqual(this.planner.template(spec, overrides).template, plan.template)) {
      this.outcomes.record({ outcome: 'not_suitable' });
      return null;
    }
    const { fingerprint } = plan;
    const id = await this.repository.claim(manager, hostId, fingerprint);
    this.outcomes.record({ outcome: id === null ? 'none_ready' : 'warm' });
    this.claimedAt = performance.now();
    this.short.add(fingerprint);
    this.backOff.succeeded(fingerprint);
    return id;
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
      this.plans = this.config.sandboxes.warm === 0 ? [] : await this.plan(warm);
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

  /** Each specification whose program can wait for a key, anew: images may have been built meanwhile. */
  private async plan(warm: WarmStarts): Promise<WarmPlan[]> {
    // The way out belongs to one sandbox, and is in its environment from the start.
    const open = this.specs.all().filter((spec) => !this.egress.isRestricted(spec));
    const plans = open.map(async (spec) => {
      const { template } = this.planner.template(spec, null);
      const fingerprint = await warm.fingerprint(template);
      return fingerprint === null ? [] : [{ spec, template, fingerprint }];
    });
    return (await Promise.all(plans)).flat();
  }

  private async check(): Promise<void> {
    await this.repository.forgetLost(LOST_HOST_SECONDS);
    const rows = await this.repository.ofHost();
    this.isDone = rows.length === 0 && this.config.sandboxes.warm === 0;
    const results = await Promise.allSettled(
      rows.map(async (row) => {
        const reason = await this.uselessness(row, rows);
        if (reason !== null) {
          await this.remove(row, reason);
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
    const { state, liveness } = await this.look(row.id);
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
    this.backOff.failed(row.fingerprint);
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
        await this.start(warm, plan, row.id);
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
      this.backOff.allows(fingerprint)
    );
  }

  /** Never throws: what fails is tried again later. */
  private async start(
    warm: WarmStarts,
    { spec, template, fingerprint }: WarmPlan,
    id: string,
  ): Promise<void> {
    const deadline = new StartDeadline(this.clock, spec.startTimeoutSeconds, this.stopped.signal);
    try {
      await warm.start({ ...template, id, onProgress: () => void deadline.extend() }, deadline.signal);
      deadline.extend();
      await this.probe.waitUntilReady({ id, sessionKey: null }, deadline);
      // Another replica may have seen it first, and it may have a user by now. If it was dropped, it is an orphan.
      if (await this.repository.markReady(id)) {
        this.logger.log('warm sandbox ready', { sandbox_id: id, sandbox_spec_id: spec.id });
      }
    } catch (error) {
      if (this.stopped.signal.aborted) {
        return;
      }
      const retryInMs = this.backOff.failed(fingerprint);
      this.logger.warn('failed to start warm sandbox', {
        sandbox_id: id,
        sandbox_spec_id: spec.id,
        retry_in_s: Math.round(retryInMs / 1000),
        error: errorMessage(error),
      });
      await this.dropFailed(id);
    } finally {
      deadline.close();
    }
  }

  private async dropFailed(id: string): Promise<void> {
    try {
      if (await this.repository.drop(id)) {
        await removeSandbox(this.backend, id);
      }
    } catch (error) {
      // Without its row it is an orphan, which the reconciler removes; with it, the next check drops it.
      this.logger.warn('failed to remove warm sandbox', { sandbox_id: id, error: errorMessage(error) });
    }
  }

  private async look(id: string): Promise<Pick<SandboxFacts, 'state'> & { liveness: Liveness | null }> {
    const { state, address } = await this.backend.inspect(id);
    const isThere = state === 'running' && address !== null;
    return { state, liveness: isThere ? await this.client.liveness(address) : null };
  }

  /** The row first, so that it cannot be claimed any more. */
  private async remove({ id, specId }: WarmSandbox, message: string): Promise<void> {
    if (await this.repository.drop(id)) {
      // Any other may have an owner whom a restored database does not know: the rules for orphans apply.
      if ((await this.look(id)).liveness === 'unassigned') {
        await removeSandbox(this.backend, id);
      }
      this.logger.log(message, { sandbox_id: id, sandbox_spec_id: specId });
    }
  }
}
