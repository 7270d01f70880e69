import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';

/** Lets starts wait for changes of their sandboxes that this process makes. */
@Injectable()
export class SandboxChangeWaiter {
  private readonly waiting = new Map<string, Set<AbortController>>();

  constructor(events: SandboxEvents) {
    events.onRunning((id) => this.emit(id));
    events.onStopped((id) => this.emit(id));
  }

  /**
   * Waits until this process changes the sandbox, or for so long; the caller looks what became of it.
   *
   * @throws the signal's reason when it aborts
   */
  async wait(sandboxId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const changed = new AbortController();
    const waiting = this.waiting.get(sandboxId) ?? new Set();
    this.waiting.set(sandboxId, waiting.add(changed));
    try {
      await delay(timeoutMs, undefined, { signal: AbortSignal.any([signal, changed.signal]) });
    } catch (error) {
      if (!changed.signal.aborted) {
        throw error;
      }
    } finally {
      waiting.delete(changed);
      if (waiting.size === 0) {
        this.waiting.delete(sandboxId);
      }
    }
    signal.throwIfAborted();
  }

  private emit(sandboxId: string): void {
    this.waiting.get(sandboxId)?.forEach((changed) => changed.abort());
  }
}
