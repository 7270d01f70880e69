import { Injectable } from '@nestjs/common';
import type { Sandbox } from '../sandbox.entity.js';

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
