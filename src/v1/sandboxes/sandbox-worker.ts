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
  private readonly turns = new Map<string, { turn: SandboxTurn; done: Promise<void> }>();
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
    this.kicks.onKick(() => void this.loop.now());
    this.loop.start();
    this.kicks.kick();
  }

  /** Gives up what can go on later or elsewhere. Programs of sandboxes live on. */
  async beforeApplicationShutdown(): Promise<void> {
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
      const ids = places > 0 ? await this.leases.takeDue(places, statuses) : [];
      // After a stall of this process its own leases may look like those of a dead one.
      ids.filter((id) => !this.turns.has(id)).forEach((id) => this.begin(id));
      if (ids.length < places) {
        return;
      }
    }
  }

  private begin(id: string): void {
    const turn = new SandboxTurn(id, {
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
    const done = turn.run().finally(() => {
      this.turns.delete(id);
      // A place became free, and the sandbox itself may have been changed just now.
      this.kicks.kick();
    });
    this.turns.set(id, { turn, done });
  }
}
