import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import type { LeaseEnd } from '@slipway/database/leased-rows.js';
import { LeasedWork, type LeasedWorkOptions } from '@slipway/database/leased-worker.js';
import { ServiceLeasedWorker } from '../../../database/leased-work.module.js';
import { SandboxWorkerSignal } from '../sandbox-events.js';
import {
  type LeasedSandbox,
  SANDBOX_LEASE_MS,
  SandboxLifecycleRepository,
} from '../sandbox-lifecycle.repository.js';
import { StepInterrupted } from './sandbox-starter.js';
import { SandboxTransitionsRunner } from './sandbox-transitions.runner.js';

/** Pause after a step that failed for a reason that is not the sandbox's own. */
const RETRY_MS = 5_000;

const OPTIONS: LeasedWorkOptions = {
  queue: 'sandbox',
  places: 16,
  // Starts leave these free: a start may pull an image for an hour, and stops are done soon.
  reserved: 4,
  leaseMs: SANDBOX_LEASE_MS,
  pollMs: 1_000,
  pauseMs: RETRY_MS,
  mostPauseMs: RETRY_MS,
};
/** At once, without a word to the other replicas. */
const NEXT_STEP_MS = 1;

/** Brings sandboxes of this host out of their transitional statuses, several at a time, each by one step at a time. */
@Injectable()
export class SandboxWorker extends ServiceLeasedWorker<LeasedSandbox> implements BeforeApplicationShutdown {
  constructor(
    private readonly sandboxes: SandboxLifecycleRepository,
    private readonly transitions: SandboxTransitionsRunner,
    private readonly signal: SandboxWorkerSignal,
    shared: LeasedWork,
  ) {
    super(OPTIONS, shared, sandboxes.leases, new Logger('Sandboxes'));
  }

  override onApplicationBootstrap(): void {
    super.onApplicationBootstrap();
    this.signal.onWake(() => this.lookNow());
    this.signal.wake();
  }

  /** A backend's work is not broken off, however long it takes. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.ended();
  }

  /** Finds statuses that requests have changed meanwhile, too. */
  protected override async look(): Promise<number> {
    void this.renewing.now();
    return super.look();
  }

  protected async work(row: LeasedSandbox, signal: AbortSignal): Promise<LeaseEnd> {
    try {
      await this.transitions.run(this.sandboxes.sandboxOf(row), signal);
    } catch (error) {
      if (!signal.aborted && !(error instanceof StepInterrupted)) {
        throw error;
      }
    }
    const isHandedOver = this.stopping.signal.aborted;
    return { dueAt: this.after(isHandedOver ? 0 : NEXT_STEP_MS), counts: false };
  }

  protected override isWanted({ status }: LeasedSandbox, now: unknown): boolean {
    return status === now;
  }

  protected override traceparentOf({ traceparent }: LeasedSandbox): string | null {
    return typeof traceparent === 'string' ? traceparent : null;
  }
}
