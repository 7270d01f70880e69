import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';

/**
 * `starting`: its start has begun; it is not RUNNING before the listeners are done. `running`: it became RUNNING, or was
 * RUNNING when the service started. `stopping`: the stop waits for the listeners, within bounds, and the agent server
 * still answers (`lastTarget`). `stopped`: it is no longer RUNNING, but paused, failed or removed.
 */
type SandboxEvent = 'starting' | 'running' | 'stopping' | 'stopped';
type Listener = (sandboxId: string) => void | Promise<void>;

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
          const fields = { sandbox_id: sandboxId, event };
          this.logger.error('failed to handle a sandbox event', fields, errorStack(error));
        }
      }),
    );
  }
}

/** Wakes the workers of a host (the payload) whose sandbox a replica of another host has changed. */
export const SANDBOXES_CHANNEL = 'sandboxes';

/** Wakes this process's worker. An optimization: those of the row's host find the work within seconds. */
@Injectable()
export class SandboxWorkerSignal {
  private listener: (() => void) | null = null;

  onWake(listener: () => void): void {
    this.listener = listener;
  }

  /** Call after the commit. */
  wake(): void {
    this.listener?.();
  }
}
