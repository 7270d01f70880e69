import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import type { Sandbox } from './sandbox.entity.js';

type Listener = (sandboxId: string) => void | Promise<void>;

/** Reports starts and stops of sandboxes, only in the process that worked on them. */
@Injectable()
export class SandboxEvents {
  private readonly logger = new Logger(SandboxEvents.name);
  private readonly startingListeners: Listener[] = [];
  private readonly runningListeners: Listener[] = [];
  private readonly beforeStopListeners: Listener[] = [];
  private readonly stoppedListeners: Listener[] = [];

  /** Its start has begun. It is not RUNNING before the promise is settled. */
  onStarting(listener: Listener): void {
    this.startingListeners.push(listener);
  }

  /** It became RUNNING, or was RUNNING when the service started. */
  onRunning(listener: Listener): void {
    this.runningListeners.push(listener);
  }

  /** The stop waits for the promise, within bounds. The agent server still answers (`lastTarget`). */
  beforeStop(listener: (sandboxId: string) => Promise<void>): void {
    this.beforeStopListeners.push(listener);
  }

  /** It is no longer RUNNING: paused, failed or removed. */
  onStopped(listener: Listener): void {
    this.stoppedListeners.push(listener);
  }

  async emitStarting(sandboxId: string): Promise<void> {
    await this.emit('starting', this.startingListeners, sandboxId);
  }

  async emitRunning(sandboxId: string): Promise<void> {
    await this.emit('running', this.runningListeners, sandboxId);
  }

  async emitBeforeStop(sandboxId: string): Promise<void> {
    await this.emit('before stop', this.beforeStopListeners, sandboxId);
  }

  async emitStopped(sandboxId: string): Promise<void> {
    await this.emit('stopped', this.stoppedListeners, sandboxId);
  }

  /** A failing listener stops neither the others nor the sandbox. */
  private async emit(event: string, listeners: readonly Listener[], sandboxId: string): Promise<void> {
    await Promise.all(
      listeners.map(async (listener) => {
        try {
          await listener(sandboxId);
        } catch (error) {
          this.logger.error(
            'failed to handle a sandbox event',
            { sandbox_id: sandboxId, event },
            errorStack(error),
          );
        }
      }),
    );
  }
}

type WakeListener = (taken: Sandbox | null) => void;

/** Wakes this process's worker. An optimization: any sweep of the row's host finds the work within a second. */
@Injectable()
export class SandboxWorkerSignal {
  private listener: WakeListener | null = null;

  onWake(listener: WakeListener): void {
    this.listener = listener;
  }

  /** Call after the commit. `taken` is the row if this process took its lease with that change. */
  wake(taken: Sandbox | null = null): void {
    this.listener?.(taken);
  }
}
