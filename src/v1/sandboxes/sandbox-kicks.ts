import { Injectable } from '@nestjs/common';
import type { Sandbox } from './sandbox.entity.js';

/** Tells the worker of this process at once that there is work, instead of at its next sweep. */
@Injectable()
export class SandboxKicks {
  private listener: ((taken: Sandbox | null) => void) | null = null;

  /** There is one worker in a process. */
  onKick(listener: (taken: Sandbox | null) => void): void {
    this.listener = listener;
  }

  /**
   * To be called after the change of the row was committed.
   *
   * @param taken a row whose lease this process took with that change; null: the worker looks for what is to be done
   */
  kick(taken: Sandbox | null = null): void {
    this.listener?.(taken);
  }
}
