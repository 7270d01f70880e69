import { AsyncResource } from 'node:async_hooks';
import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../common/repeated-work.js';
import { HostIdentity } from './host-identity.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { SandboxLeases } from './sandbox-leases.js';
import { SandboxSteps } from './sandbox-steps.js';
import { TRANSITIONAL_STATUSES } from './sandbox-transitions.js';
import { SandboxTurn } from './sandbox-turn.js';
import type { Sandbox } from './sandbox.entity.js';
import { SandboxStore } from './sandbox.store.js';

const SWEEP_MS = 1_000;
/** Sandboxes that one process works on at a time; starting more at once makes none of them faster. */
const MOST_AT_ONCE = 16;
/** Of these, places that no start takes: a start may pull an image for an hour, and stops are over soon. */
const FOR_STOPS = 4;
const STOPS = ['PAUSING', 'DELETING'] as const;

/** Brings sandboxes of this host out of their transitional statuses, several at a time, each in one process. */
@Injectable()
export class SandboxWorker implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly turns = new Set<{ id: string; turn: SandboxTurn; done: Promise<void> }>();
  /** Turns belong to nobody's request, whoever asked for them: their log lines must not say so. */
  private readonly scope = new AsyncResource('SandboxWorker');
  private stopped = false;
  private readonly loop = new RepeatedWork(
    SWEEP_MS,
    () => this.sweep(),
    (error) => {
      this.logger.error('looking for work failed', error instanceof Error ? error.stack : String(error));
    },
  );

  constructor(
    private readonly leases: SandboxLeases,
    private readonly store: SandboxStore,
    private readonly steps: SandboxSteps,
    private readonly host: HostIdentity,
    private readonly kicks: SandboxKicks,
  ) {}

  onApplicationBootstrap(): void {
    this.kicks.onKick((taken) => {
      void (taken === null ? this.loop.now() : this.scope.runInAsyncScope(() => this.accept(taken)));
    });
    this.loop.start();
    this.kicks.kick();
  }

  /** Gives up what can go on later or elsewhere. Programs of sandboxes live on. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await this.loop.stop();
    const turns = [...this.turns];
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
    if (!this.stopped && this.turns.size < MOST_AT_ONCE) {
      this.begin(taken);
      return;
    }
    try {
      await this.leases.release(taken.id);
    } catch (error) {
      this.logger.warn('a lease was not given back', { sandbox_id: taken.id, error: String(error) });
    }
  }

  /** Begins a turn with a sandbox whose lease was just taken. */
  private begin(taken: Sandbox): void {
    const { id } = taken;
    const turn = this.turnWith(id);
    // One that has just given its lease back; or, after a stall of this process, one whose lease looked like a dead one's.
    const before = [...this.turns].findLast((other) => other.id === id);
    const run = before === undefined ? turn.run(taken) : before.done.then(() => turn.run(null));
    const done = run.finally(() => {
      this.turns.delete(entry);
      // A place became free, and the sandbox itself may have been changed just now.
      this.kicks.kick();
    });
    const entry = { id, turn, done };
    this.turns.add(entry);
  }

  private turnWith(id: string): SandboxTurn {
    return new SandboxTurn(id, {
      leases: this.leases,
      store: this.store,
      steps: this.steps,
      processId: this.host.processId,
      onError: (message, sandboxId, error) => {
        this.logger.error(
          message,
          { sandbox_id: sandboxId },
          error instanceof Error ? error.stack : String(error),
        );
      },
    });
  }
}
