import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import type { Sandbox } from './sandbox.entity.js';

type Listener = (sandboxId: string) => void | Promise<void>;

type SandboxEvent =
  /** Its start has begun. It is not RUNNING before its listeners are done. */
  | 'starting'
  /** It became RUNNING, or was RUNNING when the service started. */
  | 'running'
  /** The stop waits for its listeners, within bounds. The agent server still answers (`lastTarget`). */
  | 'before stop'
  /** It is no longer RUNNING: paused, failed or removed. */
  | 'stopped';

/** Reports starts and stops of sandboxes, only in the process that worked on them. */
@Injectable()
export class SandboxEvents {
  private readonly logger = new Logger(SandboxEvents.name);
  private readonly listeners: { event: SandboxEvent; listener: Listener }[] = [];

  on(event: SandboxEvent, listener: Listener): void {
    this.listeners.push({ event, listener });
  }

  /** A failing listener stops neither the others nor the sandbox. */
  async emit(event: SandboxEvent, sandboxId: string): Promise<void> {
    const concerned = this.listeners.filter((each) => each.event === event);
    await Promise.all(
      concerned.map(async ({ listener }) => {
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
