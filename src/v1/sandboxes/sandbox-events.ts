import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import type { Sandbox } from './sandbox.entity.js';

type Listener = (sandboxId: string) => void | Promise<void>;

/** Tells other features when sandboxes start and stop, in the process that worked on the sandbox and in no other. */
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

  /**
   * It is about to be stopped or removed; its agent server still answers (`RunningSandboxQueries.lastTarget`). The stop
   * waits for the promise, within bounds.
   */
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

  /** A listener that fails does not stop the others, nor the sandbox. */
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

/**
 * Wakes the worker of this process, so that it does not wait for its next sweep. An optimization only: without it the
 * sweep of any process of the row's host finds the work, within a second.
 */
@Injectable()
export class SandboxWorkerSignal {
  private listener: WakeListener | null = null;

  /** A process has one worker. */
  onWake(listener: WakeListener): void {
    this.listener = listener;
  }

  /**
   * To be called once the change of the row is committed.
   *
   * @param taken the row, when this process took its lease with that change; null: the worker looks for due rows
   */
  wake(taken: Sandbox | null = null): void {
    this.listener?.(taken);
  }
}
