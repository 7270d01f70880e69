import { setTimeout as delay } from 'node:timers/promises';
import { SpanKind } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import { jittered, RepeatedWork, within } from '@slipway/common/async.js';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import type { Clock } from '@slipway/common/clock.js';
import type { Log } from '@slipway/common/log.js';
import { isDatabaseAway } from './database-failure.js';
import { type SpanStart, tracedFrom } from '@slipway/common/spans.js';
import type { DatabaseNotifications } from './database-notifications.js';
import type { Lease, LeaseBacklog, LeasedRows, LeaseEnd } from './leased-rows.js';

/** What has not ended by then loses its lease to another process. */
const STOP_GRACE_MS = 10_000;
/** How many renewals may fail before a lease ends. */
const RENEWALS = 3;
/** A statement that never succeeds may look like an outage, so outages count after these. */
const MAX_OUTAGES = 20;
const MAX_TROUBLES = 1_000;
const NO_SHARE = 1_000_000;
/** Finds what is due without a word: of users who may act again, and of the release before this one. */
const IDLE_MS = 15_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 3_600_000;

export interface LeasedWorkOptions {
  /** The queue's name in logs, spans and metrics. */
  queue: string;
  /** At a time, in this process. */
  places: number;
  /** How many of the places are kept for owners who have nothing under way. */
  reserved?: number;
  /** Rows of one owner under way, in all processes. */
  share?: number;
  /** What takes longer goes on without its place. */
  slowAfterMs?: number;
  leaseMs: number;
  /** While something is under way, or due and not to be taken yet, or notifications may be lost. */
  pollMs: number;
  /** Attempts that may fail before `giveUp`; without it they go on for ever. */
  mostAttempts?: number;
  /** Before the second attempt, in milliseconds; doubled for each further one. */
  pauseMs?: number;
  /** An hour by default. */
  mostPauseMs?: number;
}

interface Held<Row> {
  row: Row;
  lost: AbortController;
  /** Aborts work that is not wanted any more; its lease goes on, so that no other process begins before it has ended. */
  unwanted: AbortController;
  /** Monotonic milliseconds. */
  renewedAt: number;
  isInLane: boolean;
  done: Promise<void>;
}

/** What is known of a row's earlier attempts in this process. */
interface Trouble {
  outages: number;
  failure: string | null;
}

/** What workers share, and where metrics find their backlogs. */
export class LeasedWork {
  private readonly counted = new Map<string, () => Promise<LeaseBacklog>>();

  constructor(
    readonly notifications: DatabaseNotifications,
    readonly clock: Clock,
  ) {}

  count(queue: string, backlog: () => Promise<LeaseBacklog>): void {
    this.counted.set(queue, backlog);
  }

  /** The backlogs of all processes, by queue. */
  async backlogs(): Promise<Map<string, LeaseBacklog>> {
    const found = [...this.counted].map(async ([queue, read]) => [queue, await read()] as const);
    return new Map(await Promise.all(found));
  }
}

/** Works on rows that are due (docs/adr/0071). */
export abstract class LeasedWorker<Row extends Lease> {
  protected readonly stopping = new AbortController();
  private readonly held = new Map<string, Held<Row>>();
  private readonly troubles = new LRUCache<string, Trouble>({ max: MAX_TROUBLES });
  protected readonly looking: RepeatedWork;
  protected readonly renewing: RepeatedWork;
  private stopListening: (() => void) | null = null;

  protected constructor(
    protected readonly options: LeasedWorkOptions,
    protected readonly shared: LeasedWork,
    protected readonly rows: LeasedRows<Row>,
    protected readonly logger: Log,
  ) {
    const { queue, pollMs, leaseMs } = options;
    const report = (message: string) => (error: unknown) =>
      logger.warn(message, { queue, error: errorMessage(error) });
    this.looking = new RepeatedWork(pollMs, () => this.look(), report('failed to find due work'));
    this.renewing = new RepeatedWork(
      leaseMs / RENEWALS,
      () => this.renew(),
      report('failed to renew leases'),
    );
  }

  start(): void {
    const { channel, payload = '' } = this.rows.definition;
    const wake = (): void => void this.looking.now();
    this.stopListening = this.shared.notifications.listen(
      channel,
      (told) => {
        if (told === payload) {
          wake();
        }
      },
      wake,
    );
    this.shared.clock.whenSet(() => this.looking.within(this.options.pollMs));
    this.looking.start();
    this.renewing.start();
  }

  /** What is broken off is done by another process at once. */
  async stop(): Promise<void> {
    this.stopListening?.();
    this.stopping.abort();
    await this.looking.stop();
    await within(STOP_GRACE_MS, this.ended());
    await this.renewing.stop();
  }

  /** Takes what is due now instead of within seconds, and waits until nothing of it is left. */
  async now(): Promise<void> {
    await this.looking.now();
    while (this.held.size > 0) {
      await this.ended();
      await this.looking.now();
    }
  }

  /**
   * Says when the row is due again, or that it was given back together with what the work has changed. A throw means another
   * attempt later. `signal`: the process stops, or another one has the row.
   */
  protected abstract work(row: Row, signal: AbortSignal): Promise<LeaseEnd | 'ended'>;

  /** After the last attempt; null: no process that worked on it lived to say why. A throw means: again, later. */
  protected giveUp(_row: Row, _failure: string | null): Promise<void> {
    return Promise.resolve();
  }

  /** Whether what goes on is still asked for, by what `renewing` says of the row now; otherwise its signal aborts. */
  protected isWanted(_row: Row, _renewed: unknown): boolean {
    return true;
  }

  protected traceparentOf(_row: Row): string | null {
    return null;
  }

  protected async ended(): Promise<void> {
    await Promise.all(Array.from(this.held.values(), ({ done }) => done));
  }

  /** Finds what this process has made due; the others are told of it where it stops, or has no place left. Returns at once. */
  protected lookNow(): void {
    const { places, reserved = 0, queue } = this.options;
    const look = async (): Promise<void> => {
      await this.looking.now();
      if (this.stopping.signal.aborted || this.inLane >= places - reserved) {
        await this.rows.wake();
      }
    };
    look().catch((error: unknown) =>
      this.logger.warn('failed to tell other processes of due work', { queue, error: errorMessage(error) }),
    );
  }

  /** Returns the milliseconds until the next look. */
  protected async look(): Promise<number> {
    const { places, reserved = 0, share = NO_SHARE, pollMs } = this.options;
    const { clock } = this.shared;
    const lookedAt = clock.now();
    let nextAt = await this.fill(places - reserved, share);
    if (reserved > 0 && this.inLane >= places - reserved) {
      nextAt = await this.fill(places, 1);
    }
    const isIdle = this.held.size === 0 && this.shared.notifications.isConnected;
    const mostMs = jittered(isIdle ? Math.max(pollMs, IDLE_MS) : pollMs);
    const next = nextAt?.getTime() ?? Infinity;
    // What was due already cannot be taken yet; what has become due meanwhile can.
    return next > lookedAt ? Math.min(Math.max(next - clock.now(), 0), mostMs) : jittered(pollMs);
  }

  private get inLane(): number {
    return Array.from(this.held.values()).filter(({ isInLane }) => isInLane).length;
  }

  /** Returns when the next row is due, as far as is known. */
  private async fill(places: number, share: number): Promise<Date | null> {
    const limit = places - this.inLane;
    if (limit <= 0 || this.stopping.signal.aborted) {
      return null;
    }
    const held = [...this.held.keys()];
    const renewedAt = performance.now();
    const { rows, nextAt } = await this.rows.take({ limit, share, leaseMs: this.options.leaseMs, held });
    rows.forEach((row) => this.begin(row, renewedAt));
    return nextAt;
  }

  private begin(row: Row, renewedAt: number): void {
    const { slowAfterMs } = this.options;
    const [lost, unwanted] = [new AbortController(), new AbortController()];
    const held = { row, lost, unwanted, renewedAt, isInLane: true, done: Promise.resolve() };
    const leaveLane = (): void => {
      held.isInLane = false;
      void this.looking.now();
    };
    const slow = slowAfterMs === undefined ? undefined : setTimeout(leaveLane, slowAfterMs);
    this.held.set(row.id, held);
    held.done = this.attempt(held).finally(() => {
      clearTimeout(slow);
      this.held.delete(row.id);
      leaveLane();
    });
  }

  private async attempt({ row, lost: { signal: lost }, unwanted }: Held<Row>): Promise<void> {
    const { mostAttempts = Infinity } = this.options;
    const signal = AbortSignal.any([this.stopping.signal, lost, unwanted.signal]);
    if (row.attempts > mostAttempts) {
      await this.abandon(row, lost, this.troubles.get(row.id)?.failure ?? null);
      return;
    }
    try {
      signal.throwIfAborted();
      const end = await tracedFrom(this.traceparentOf(row), this.span(row), () => this.work(row, signal));
      this.troubles.delete(row.id);
      if (end !== 'ended') {
        await this.settle(row, lost, end);
      }
    } catch (error) {
      await this.handleFailure(row, error, lost);
    }
  }

  private async handleFailure(row: Row, error: unknown, lost: AbortSignal): Promise<void> {
    const { outages, failure } = this.troubles.get(row.id) ?? { outages: 0, failure: null };
    const fields = { queue: this.options.queue, id: row.id };
    if (lost.aborted) {
      this.logger.warn('work was given to another process', { ...fields, error: errorMessage(error) });
    } else if (this.stopping.signal.aborted) {
      await this.settle(row, lost, { dueAt: this.after(0), counts: false });
    } else if (isOutage(error) && outages < MAX_OUTAGES) {
      this.troubles.set(row.id, { outages: outages + 1, failure });
      this.logger.warn('failed to work without database', { ...fields, error: errorMessage(error) });
      await this.settle(row, lost, { dueAt: this.after(this.pause(1)), counts: false });
    } else {
      this.logger.error('failed to work', { ...fields, stack: errorStack(error) });
      this.troubles.set(row.id, { outages, failure: errorMessage(error) });
      await (row.attempts === this.options.mostAttempts
        ? this.abandon(row, lost, errorMessage(error))
        : this.settle(row, lost, { dueAt: this.after(this.pause(row.attempts)) }));
    }
  }

  private async abandon(row: Row, lost: AbortSignal, failure: string | null): Promise<void> {
    try {
      await this.giveUp(row, failure);
      this.troubles.delete(row.id);
      await this.settle(row, lost, { dueAt: null });
    } catch (error) {
      const fields = { queue: this.options.queue, id: row.id };
      this.logger.error('failed to give up work', { ...fields, stack: errorStack(error) });
      await this.settle(row, lost, { dueAt: this.after(this.pause(row.attempts)) });
    }
  }

  /** Tries while the lease lasts; what cannot be given back is taken by another process afterwards. */
  private async settle(row: Row, lost: AbortSignal, end: LeaseEnd): Promise<void> {
    const signal = AbortSignal.any([this.stopping.signal, lost]);
    for (let isSettled = false; !isSettled;) {
      try {
        await this.rows.end(row, end);
        isSettled = true;
      } catch (error) {
        const fields = { queue: this.options.queue, id: row.id, error: errorMessage(error) };
        this.logger.warn('failed to give back work', fields);
        isSettled = !isOutage(error) || (await isAborted(signal, this.pause(1)));
      }
    }
  }

  /** A process that stood still keeps what no other process has taken. */
  private async renew(): Promise<void> {
    const { leaseMs } = this.options;
    const all = [...this.held.values()].filter(({ lost }) => !lost.signal.aborted);
    if (all.length === 0) {
      return;
    }
    const renewedAt = performance.now();
    try {
      const kept = await this.rows.renew(
        all.map(({ row }) => row),
        leaseMs,
      );
      for (const held of all) {
        if (!kept.has(held.row.id)) {
          held.lost.abort();
          continue;
        }
        held.renewedAt = renewedAt;
        if (!this.isWanted(held.row, kept.get(held.row.id))) {
          held.unwanted.abort();
        }
      }
    } finally {
      all.filter((held) => performance.now() - held.renewedAt >= leaseMs).forEach(({ lost }) => lost.abort());
    }
  }

  protected after(milliseconds: number): Date {
    return new Date(this.shared.clock.now() + milliseconds);
  }

  protected pause(attempts: number): number {
    const { pauseMs = FIRST_PAUSE_MS, mostPauseMs = MAX_PAUSE_MS } = this.options;
    return Math.min(pauseMs * 2 ** (attempts - 1), mostPauseMs);
  }

  private span({ id, attempts }: Row): SpanStart {
    const { queue } = this.options;
    return {
      name: `process ${queue}`,
      kind: SpanKind.CONSUMER,
      attributes: {
        'messaging.system': 'slipway',
        'messaging.operation.type': 'process',
        'messaging.destination.name': queue,
        'messaging.message.id': id,
        'slipway.job.attempts': attempts,
      },
    };
  }
}

/** Also finds a failure of PostgreSQL that another error wraps. */
function isOutage(error: unknown): boolean {
  return (
    isDatabaseAway(error) || (error instanceof Error && error.cause !== undefined && isOutage(error.cause))
  );
}

/** Waits, unless the signal aborts before. */
async function isAborted(signal: AbortSignal, milliseconds: number): Promise<boolean> {
  try {
    await delay(milliseconds, undefined, { signal, ref: false });
    return false;
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
    return true;
  }
}
