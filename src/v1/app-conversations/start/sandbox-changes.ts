import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { SandboxListeners } from '../../sandboxes/sandbox-listeners.js';

/** Lets starts wait for sandboxes: the end of a wait comes with what this process hears, or with the time. */
@Injectable()
export class SandboxChanges {
  private readonly waiting = new Map<string, Set<AbortController>>();

  constructor(listeners: SandboxListeners) {
    listeners.onRunning((id) => this.tell(id));
    listeners.onStopped((id) => this.tell(id));
  }

  /**
   * Waits until something is heard of the sandbox, at most so long; what became of it is for the caller to look at.
   *
   * @throws the signal's reason when it aborts
   */
  async wait(sandboxId: string, atMostMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const heard = new AbortController();
    const waiting = this.waiting.get(sandboxId) ?? new Set();
    this.waiting.set(sandboxId, waiting.add(heard));
    try {
      await delay(atMostMs, undefined, { signal: AbortSignal.any([signal, heard.signal]) });
    } catch (error) {
      if (!heard.signal.aborted) {
        throw error;
      }
    } finally {
      waiting.delete(heard);
      if (waiting.size === 0) {
        this.waiting.delete(sandboxId);
      }
    }
    signal.throwIfAborted();
  }

  private tell(sandboxId: string): void {
    this.waiting.get(sandboxId)?.forEach((heard) => heard.abort());
  }
}
