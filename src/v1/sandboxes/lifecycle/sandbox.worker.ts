import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { HostIdentity } from '../host-identity.js';
import { SandboxWorkerSignal } from '../sandbox-events.js';
import { SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';
import { isTransitional, TRANSITIONAL_STATUSES } from '../sandbox-status.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { StepInterrupted } from './sandbox-starter.js';
import { SandboxTransitionsRunner } from './sandbox-transitions.runner.js';

/** Pause after a step that failed for a reason that is not the sandbox's own. */
const RETRY_MS = 5_000;

interface LeaseSessionTools {
  leases: SandboxLifecycleRepository;
  sandboxes: SandboxRepository;
  transitions: SandboxTransitionsRunner;
  logger: Logger;
  processId: string;
}

class LeaseSession {
  private step: { status: string; control: AbortController } | null = null;
  private stopped = false;
  private checking: Promise<void> | null = null;
  /** Only the first failure of an outage is logged. */
  private failing = false;

  constructor(
    private readonly id: string,
    private readonly tools: LeaseSessionTools,
  ) {}

  /** Runs once at a time and never throws. A null `taken` makes it read the row. */
  async run(taken: Sandbox | null): Promise<void> {
    const { leases } = this.tools;
    try {
      await this.runSteps(taken);
      await leases.release(this.id);
    } catch (error) {
      this.logError('failed to process a sandbox; retrying', error);
      try {
        await leases.release(this.id, RETRY_MS);
      } catch (failure) {
        this.logError('failed to release the lease of a sandbox', failure);
      }
    }
    await this.checking;
  }

  /** Renews the lease, and interrupts a step when the row has another status. Does not wait for a locked row. */
  check(): void {
    this.checking ??= this.renew().finally(() => {
      this.checking = null;
    });
  }

  stop(): void {
    this.stopped = true;
    this.step?.control.abort(new StepInterrupted('the service is stopping'));
  }

  private async renew(): Promise<void> {
    const { step } = this;
    try {
      const status = await this.tools.leases.renew(this.id);
      this.failing = false;
      if (step && status !== step.status) {
        step.control.abort(new StepInterrupted('the sandbox has another status by now'));
      }
    } catch (error) {
      if (!this.failing) {
        this.failing = true;
        this.logError('failed to renew the lease of a sandbox', error);
      }
    }
  }

  private async runSteps(taken: Sandbox | null): Promise<void> {
    const { sandboxes, transitions, processId } = this.tools;
    let known = taken;
    while (!this.stopped) {
      const sandbox = known ?? (await sandboxes.read(this.id));
      known = null;
      if (!sandbox || sandbox.leaseOwner !== processId || !isTransitional(sandbox.status)) {
        return;
      }
      const control = new AbortController();
      this.step = { status: sandbox.status, control };
      try {
        await transitions.run(sandbox, control.signal);
      } catch (error) {
        if (!control.signal.aborted && !(error instanceof StepInterrupted)) {
          throw error;
        }
      } finally {
        this.step = null;
      }
    }
  }

  private logError(message: string, error: unknown): void {
    this.tools.logger.error(message, { sandbox_id: this.id }, errorStack(error));
  }
}

const SWEEP_MS = 1_000;
const MAX_SESSIONS = 16;
/** Starts leave these free: a start may pull an image for an hour, and stops are done soon. */
const RESERVED_FOR_STOPS = 4;
const STOPPING_STATUSES = ['PAUSING', 'DELETING'] as const;

interface Work {
  session: LeaseSession;
  isTakenAgain: boolean;
  done: Promise<void>;
}

/** Brings sandboxes of this host out of their transitional statuses, several at a time. */
@Injectable()
export class SandboxWorker extends BackgroundLoop {
  private readonly works = new Map<string, Work>();

  constructor(
    private readonly leases: SandboxLifecycleRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly transitions: SandboxTransitionsRunner,
    private readonly host: HostIdentity,
    private readonly signal: SandboxWorkerSignal,
  ) {
    super(SWEEP_MS, new Logger('Sandboxes'), 'failed to look for due sandboxes');
  }

  override onApplicationBootstrap(): void {
    this.signal.onWake(() => void this.loop.now());
    this.loop.start();
    this.signal.wake();
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    const works = [...this.works.values()];
    works.forEach(({ session }) => session.stop());
    await Promise.all(works.map(({ done }) => done));
  }

  protected async work(): Promise<void> {
    this.works.forEach(({ session }) => session.check());
    for (const [max, statuses] of [
      [MAX_SESSIONS - RESERVED_FOR_STOPS, TRANSITIONAL_STATUSES],
      [MAX_SESSIONS, STOPPING_STATUSES],
    ] as const) {
      const free = max - this.works.size;
      const due = free > 0 ? await this.leases.takeDue(free, statuses) : [];
      due.forEach((sandbox) => this.begin(sandbox));
      if (due.length < free) {
        return;
      }
    }
  }

  private begin(taken: Sandbox): void {
    const { id } = taken;
    const known = this.works.get(id);
    if (known) {
      // It has just released its lease, or its lease expired while this process stalled.
      known.isTakenAgain = true;
      known.session.check();
      return;
    }
    const session = new LeaseSession(id, {
      leases: this.leases,
      sandboxes: this.sandboxes,
      transitions: this.transitions,
      logger: this.logger,
      processId: this.host.processId,
    });
    const work: Work = { session, isTakenAgain: false, done: Promise.resolve() };
    this.works.set(id, work);
    work.done = this.run(work, taken);
  }

  private async run(work: Work, taken: Sandbox): Promise<void> {
    await work.session.run(taken);
    while (work.isTakenAgain) {
      work.isTakenAgain = false;
      await work.session.run(null);
    }
    this.works.delete(taken.id);
    // There is room for another sandbox, and this one may have been changed just now.
    this.signal.wake();
  }
}
