import type { Clock } from '../../common/clock.js';
import { SandboxBackendError } from './backends/sandbox-backend.error.js';

const LOOK_EVERY_MS = 100;

/** Limits a start: its signal aborts when the time is over, or when the worker has to stop. */
export class StartDeadline {
  readonly signal: AbortSignal;
  private readonly over = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private endsAt: number;

  constructor(
    private readonly clock: Clock,
    private readonly seconds: number,
    worker: AbortSignal,
  ) {
    this.signal = AbortSignal.any([worker, this.over.signal]);
    this.endsAt = this.extend();
    this.timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
  }

  /** Something is going on: the time starts anew. */
  extend(): number {
    this.endsAt = this.clock.now() + this.seconds * 1000;
    return this.endsAt;
  }

  /** Whether the signal aborted because the time was over. */
  get isOver(): boolean {
    return this.over.signal.aborted;
  }

  close(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    if (this.clock.now() >= this.endsAt) {
      this.over.abort(new SandboxBackendError(`The start took longer than ${this.seconds} s.`));
    }
  }
}
