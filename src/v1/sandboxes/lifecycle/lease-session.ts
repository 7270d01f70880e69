import type { Logger } from '@nestjs/common';
import { errorStack } from '../../../common/errors/error-message.js';
import type { SandboxLeaseRepository } from '../sandbox-lease.repository.js';
import { isTransitional } from '../sandbox-status.js';
import type { Sandbox } from '../sandbox.entity.js';
import type { SandboxRepository } from '../sandbox.repository.js';
import type { SandboxTransitionsRunner } from './sandbox-transitions.runner.js';

/** Pause after a step that failed for a reason that is not the sandbox's own. */
const RETRY_MS = 5_000;

/** Aborts a step that need not go on; nothing has failed. */
class StepInterrupted extends Error {}

interface LeaseSessionTools {
  leases: SandboxLeaseRepository;
  sandboxes: SandboxRepository;
  transitions: SandboxTransitionsRunner;
  logger: Logger;
  /** Owner of the lease. */
  processId: string;
}

/** Work on one sandbox from taking its lease, through as many steps as necessary, to releasing it. */
export class LeaseSession {
  private step: { status: string; control: AbortController } | null = null;
  private stopped = false;
  private checking: Promise<void> | null = null;
  /** The last check failed: only the first failure of an outage is logged. */
  private failing = false;

  constructor(
    private readonly id: string,
    private readonly tools: LeaseSessionTools,
  ) {}

  /**
   * To be called again only when the run before has ended. Never throws.
   *
   * @param taken the row as it was when the lease was taken; null: that was a while ago, so it is read
   */
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

  /** Renews the lease, and interrupts a step when the row has another status by now. Does not wait for a locked row. */
  check(): void {
    this.checking ??= this.renew().finally(() => {
      this.checking = null;
    });
  }

  /** Interrupts what can go on later. */
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
        if (!control.signal.aborted) {
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
