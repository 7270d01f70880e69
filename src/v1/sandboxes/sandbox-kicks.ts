import { Injectable } from '@nestjs/common';

/** Tells the worker of this process at once that there is work, instead of at its next sweep. */
@Injectable()
export class SandboxKicks {
  private listener: (() => void) | null = null;

  /** There is one worker in a process. */
  onKick(listener: () => void): void {
    this.listener = listener;
  }

  /** To be called after the change of the row was committed. */
  kick(): void {
    this.listener?.();
  }
}
