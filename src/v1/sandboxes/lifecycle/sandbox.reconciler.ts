import { Injectable, Logger } from '@nestjs/common';
import { jittered } from '@slipway/common/async.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxEvents } from '../sandbox-events.js';
import { SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';
import { BackendReadiness } from './backend-readiness.js';
import { type Drift, DriftDetector } from './drift.js';
import { SandboxEgress } from './egress-access.js';
import { LeftOvers } from './left-overs.js';
import { RowRepairs } from './row-repairs.js';

/** Short enough that an agent server which dies shows as an error within 5 s. */
const EVERY_MS = 2_000;
/** While no sandbox of this host runs. */
const IDLE_MS = 10_000;
/** Reported changes come in groups; short enough that each shows within a second. */
const AFTER_CHANGE_MS = 100;
const SLOW = new Set<Drift['kind']>(['left-over', 'orphan']);

/** Compares this host's sandboxes with its backend and repairs the differences; every repair looks again first. */
@Injectable()
export class SandboxReconciler extends BackgroundLoop {
  private readonly repairs: Record<Drift['kind'], (id: string) => Promise<void>> = {
    ended: (id) => this.rows.fail(id),
    moved: (id) => this.rows.updateAddress(id),
    'left-over': (id) => this.leftOvers.stop(id),
    gone: (id) => this.rows.markMissing(id),
    back: (id) => this.rows.markPaused(id),
    orphan: (id) => this.leftOvers.removeOrphan(id),
  };
  private readonly slowRepairs = new Set<string>();
  private slowFailure: { reason: unknown } | null = null;

  constructor(
    private readonly readiness: BackendReadiness,
    private readonly drift: DriftDetector,
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly backend: SandboxBackend,
    private readonly events: SandboxEvents,
    private readonly egress: SandboxEgress,
    private readonly rows: RowRepairs,
    private readonly leftOvers: LeftOvers,
  ) {
    super(EVERY_MS, new Logger('Sandboxes'), 'failed to reconcile sandboxes with the backend');
  }

  /** Before the first request: the address of a sandbox that ran earlier may belong to something else by now. */
  override async onApplicationBootstrap(): Promise<void> {
    this.loop.start();
    this.backend.onChange(() => this.loop.within(AFTER_CHANGE_MS));
    this.events.on('running', () => this.loop.within(EVERY_MS));
    const earlier = await this.lifecycle.runningIds();
    if (earlier.length > 0) {
      await this.loop.now();
      await Promise.all(earlier.map((id) => this.egress.pauseOutdated(id)));
      const ids = await this.lifecycle.runningIds();
      await Promise.all(ids.map((id) => this.events.emit('running', id)));
    }
  }

  protected async work(): Promise<number | void> {
    if (!(await this.readiness.isReady())) {
      return;
    }
    const found = await this.drift.detect();
    found.filter(({ kind }) => SLOW.has(kind)).forEach((each) => this.repairSlowly(each));
    const results = await Promise.allSettled(
      found.filter(({ kind }) => !SLOW.has(kind)).map(({ kind, id }) => this.repairs[kind](id)),
    );
    const failure = results.find((result) => result.status === 'rejected') ?? this.slowFailure;
    this.slowFailure = null;
    if (failure) {
      throw failure.reason;
    }
    return this.drift.isQuiet ? jittered(IDLE_MS) : undefined;
  }

  /** Returns at once, because other sandboxes may exit meanwhile. The next comparison throws its error. */
  private repairSlowly({ kind, id }: Drift): void {
    if (this.slowRepairs.has(id)) {
      return;
    }
    const repair = async (): Promise<void> => {
      try {
        await this.repairs[kind](id);
      } catch (error) {
        this.slowFailure = { reason: error };
      } finally {
        this.slowRepairs.delete(id);
      }
    };
    this.slowRepairs.add(id);
    this.beside(repair());
  }
}
