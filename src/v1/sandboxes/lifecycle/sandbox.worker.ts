import { AsyncResource } from 'node:async_hooks';
import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../../common/async.js';
import { errorStack } from '../../../common/errors/error-message.js';
import { HostIdentity } from '../host-identity.js';
import { SandboxWorkerSignal, SandboxLeases } from '../sandbox-leases.js';
import { isTransitional, type Sandbox, TRANSITIONAL_STATUSES } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { SandboxTransitionsRunner } from './sandbox-transitions.runner.js';

/** After a step that failed for no reason of the sandbox's own. */
const RETRY_MS = 5_000;

/** Why a step does not go on; no failure of anything. */
class StepEnded extends Error {}

/** What a turn works with. */
interface LeaseSessionTools {
  leases: SandboxLeases;
  store: SandboxRepository;
  steps: SandboxTransitionsRunner;
  processId: string;
  onError: (message: string, sandboxId: string, error: unknown) => void;
}

/** One process's turns with one sandbox: from the taken lease, through as many steps as it takes, to giving it back. */
class LeaseSession {
  private step: { status: string; control: AbortController } | null = null;
  private stopped = false;
  private checking: Promise<void> | null = null;
  /** The last check failed: of an outage only the first failure is told. */
  private failing = false;

  constructor(
    private readonly id: string,
    private readonly tools: LeaseSessionTools,
  ) {}

  /**
   * One turn after another. Never throws.
   *
   * @param taken the row as it was when the lease was taken; null: it is read, since that was a while ago
   */
  async run(taken: Sandbox | null): Promise<void> {
    const { leases, onError } = this.tools;
    try {
      await this.steps(taken);
      await leases.release(this.id);
    } catch (error) {
      onError('a step failed, and is tried again', this.id, error);
      await leases
        .release(this.id, RETRY_MS)
        .catch((failure: unknown) => onError('a lease was not given back', this.id, failure));
    }
    await this.checking;
  }

  /** Keeps the lease, and ends a step that the row's new status overtook. Returns at once: somebody may hold the row. */
  check(): void {
    this.checking ??= this.keep().finally(() => {
      this.checking = null;
    });
  }

  /** What can go on later does. */
  stop(): void {
    this.stopped = true;
    this.step?.control.abort(new StepEnded('the service stops'));
  }

  private async keep(): Promise<void> {
    const { step } = this;
    try {
      const status = await this.tools.leases.renew(this.id);
      this.failing = false;
      if (step && status !== step.status) {
        step.control.abort(new StepEnded('the sandbox is wanted otherwise'));
      }
    } catch (error) {
      if (!this.failing) {
        this.failing = true;
        this.tools.onError('a lease was not kept', this.id, error);
      }
    }
  }

  private async steps(taken: Sandbox | null): Promise<void> {
    const { store, steps, processId } = this.tools;
    let known = taken;
    while (!this.stopped) {
      const sandbox = known ?? (await store.read(this.id));
      known = null;
      if (!sandbox || sandbox.leaseOwner !== processId || !isTransitional(sandbox.status)) {
        return;
      }
      const control = new AbortController();
      this.step = { status: sandbox.status, control };
      try {
        await steps.run(sandbox, control.signal);
      } catch (error) {
        if (!control.signal.aborted) {
          throw error;
        }
      } finally {
        this.step = null;
      }
    }
  }
}

const SWEEP_MS = 1_000;
/**
 * Sandboxes that one process works on at a time, and a few more when orders come while it looks for work; starting more
 * at once makes none of them faster.
 */
const MOST_AT_ONCE = 16;
/** Of these, places that no start takes: a start may pull an image for an hour, and stops are over soon. */
const FOR_STOPS = 4;
const STOPS = ['PAUSING', 'DELETING'] as const;

interface Work {
  turn: LeaseSession;
  /** Its lease was taken once more meanwhile: there is another turn after this one. */
  isTakenAgain: boolean;
  done: Promise<void>;
}

/** Brings sandboxes of this host out of their transitional statuses, several at a time, each in one process. */
@Injectable()
export class SandboxWorker implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly turns = new Map<string, Work>();
  /** Turns belong to nobody's request, whoever asked for them: their log lines must not say so. */
  private readonly scope = new AsyncResource('SandboxWorker');
  private stopped = false;
  private readonly loop = new RepeatedWork(
    SWEEP_MS,
    () => this.sweep(),
    (error) => {
      this.logger.error('looking for work failed', errorStack(error));
    },
  );

  constructor(
    private readonly leases: SandboxLeases,
    private readonly store: SandboxRepository,
    private readonly steps: SandboxTransitionsRunner,
    private readonly host: HostIdentity,
    private readonly kicks: SandboxWorkerSignal,
  ) {}

  onApplicationBootstrap(): void {
    this.kicks.onWake((taken) => {
      void (taken === null ? this.loop.now() : this.scope.runInAsyncScope(() => this.accept(taken)));
    });
    this.loop.start();
    this.kicks.wake();
  }

  /** Gives up what can go on later or elsewhere. Programs of sandboxes live on. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await this.loop.stop();
    const turns = [...this.turns.values()];
    turns.forEach(({ turn }) => turn.stop());
    await Promise.all(turns.map(({ done }) => done));
  }

  /** Takes what waits, and sees that what is worked on is still wanted. */
  private async sweep(): Promise<void> {
    this.turns.forEach(({ turn }) => turn.check());
    for (const [most, statuses] of [
      [MOST_AT_ONCE - FOR_STOPS, TRANSITIONAL_STATUSES],
      [MOST_AT_ONCE, STOPS],
    ] as const) {
      const places = most - this.turns.size;
      const due = places > 0 ? await this.leases.takeDue(places, statuses) : [];
      due.forEach((sandbox) => this.begin(sandbox));
      if (due.length < places) {
        return;
      }
    }
  }

  /** Works on what an order to this process took the lease of; where it cannot now, that is given back. Never throws. */
  private async accept(taken: Sandbox): Promise<void> {
    if (this.turns.has(taken.id) || (!this.stopped && this.turns.size < MOST_AT_ONCE)) {
      this.begin(taken);
      return;
    }
    try {
      await this.leases.release(taken.id);
    } catch (error) {
      this.logger.warn('a lease was not given back', { sandbox_id: taken.id, error: String(error) });
    }
    // A place may have become free meanwhile.
    await this.loop.now();
  }

  /** Works on a sandbox whose lease was just taken. */
  private begin(taken: Sandbox): void {
    const { id } = taken;
    const known = this.turns.get(id);
    if (known) {
      // It has just given its lease back; or that looked like a dead one's after a stall of this process.
      known.isTakenAgain = true;
      known.turn.check();
      return;
    }
    const work: Work = { turn: this.turnWith(id), isTakenAgain: false, done: Promise.resolve() };
    this.turns.set(id, work);
    work.done = this.run(work, taken);
  }

  private async run(work: Work, taken: Sandbox): Promise<void> {
    await work.turn.run(taken);
    while (work.isTakenAgain) {
      work.isTakenAgain = false;
      await work.turn.run(null);
    }
    this.turns.delete(taken.id);
    // A place became free, and the sandbox itself may have been changed just now.
    this.kicks.wake();
  }

  private turnWith(id: string): LeaseSession {
    return new LeaseSession(id, {
      leases: this.leases,
      store: this.store,
      steps: this.steps,
      processId: this.host.processId,
      onError: (message, sandboxId, error) => {
        this.logger.error(message, { sandbox_id: sandboxId }, errorStack(error));
      },
    });
  }
}
