import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '../../common/errors/error-message.js';

type Listener = (sandboxId: string) => void | Promise<void>;

/** What else begins and ends with sandboxes. Called in the process that worked on the sandbox, and in no other. */
@Injectable()
export class SandboxEvents {
  private readonly logger = new Logger(SandboxEvents.name);
  private readonly running: Listener[] = [];
  private readonly stopped: Listener[] = [];
  private readonly beforePauses: Listener[] = [];

  /** It became RUNNING, or was found RUNNING at the start of the service. */
  onRunning(listener: Listener): void {
    this.running.push(listener);
  }

  /** It is not RUNNING any more: paused, failed or removed. */
  onStopped(listener: Listener): void {
    this.stopped.push(listener);
  }

  /**
   * It is about to be stopped or removed; its agent server still answers (`RunningSandboxes.lastTarget`). What is
   * returned is waited for, within bounds.
   */
  beforePause(listener: (sandboxId: string) => Promise<void>): void {
    this.beforePauses.push(listener);
  }

  async emitRunning(sandboxId: string): Promise<void> {
    await this.tell('onRunning', this.running, sandboxId);
  }

  async emitStopped(sandboxId: string): Promise<void> {
    await this.tell('onStopped', this.stopped, sandboxId);
  }

  async emitBeforeStop(sandboxId: string): Promise<void> {
    await this.tell('beforePause', this.beforePauses, sandboxId);
  }

  /** A listener that fails keeps no sandbox from its way. */
  private async tell(name: string, listeners: readonly Listener[], sandboxId: string): Promise<void> {
    await Promise.all(
      listeners.map(async (listener) => {
        try {
          await listener(sandboxId);
        } catch (error) {
          this.logger.error(`a listener failed (${name})`, { sandbox_id: sandboxId }, errorStack(error));
        }
      }),
    );
  }
}
