import type { SandboxLeases } from './sandbox-leases.js';
import type { SandboxSteps } from './sandbox-steps.js';
import { isTransitional } from './sandbox-transitions.js';
import type { Sandbox } from './sandbox.entity.js';
import type { SandboxStore } from './sandbox.store.js';

/** After a step that failed for no reason of the sandbox's own. */
const RETRY_MS = 5_000;

/** Why a step does not go on; no failure of anything. */
class StepEnded extends Error {}

/** What a turn works with. */
export interface TurnTools {
  leases: SandboxLeases;
  store: SandboxStore;
  steps: SandboxSteps;
  processId: string;
  onError: (message: string, sandboxId: string, error: unknown) => void;
}

/** One process's turns with one sandbox: from the taken lease, through as many steps as it takes, to giving it back. */
export class SandboxTurn {
  private step: { status: string; control: AbortController } | null = null;
  private stopped = false;
  private checking: Promise<void> | null = null;
  /** The last check failed: of an outage only the first failure is told. */
  private failing = false;

  constructor(
    private readonly id: string,
    private readonly tools: TurnTools,
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
