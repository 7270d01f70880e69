import { Injectable } from '@nestjs/common';
import type { StartTask } from '../start-task.entity.js';
import { SandboxChanges } from './sandbox-changes.js';
import { sandboxStanding } from './sandbox-standing.js';
import { StartFailure } from './start-failure.js';
import { StartSandboxMaker } from './start-sandbox.maker.js';
import { StartSandboxReader } from './start-sandbox.reader.js';
import { StartTaskStore } from './start-task.store.js';

/** How long what another process does with the sandbox may stay unseen. */
const LOOK_MS = 250;
const PLACE_MS = 1_000;

/** Waits until a start's sandbox answers; makes it, or has it resumed, where that is needed. */
@Injectable()
export class SandboxReadiness {
  constructor(
    private readonly tasks: StartTaskStore,
    private readonly reader: StartSandboxReader,
    private readonly maker: StartSandboxMaker,
    private readonly changes: SandboxChanges,
  ) {}

  /**
   * @returns the task as it is then, in the same status
   * @throws StartFailure when there will be no sandbox
   * @throws StartEnded, the signal's reason
   */
  async untilRunning(first: StartTask, signal: AbortSignal): Promise<StartTask> {
    let task = first;
    for (;;) {
      signal.throwIfAborted();
      const standing = sandboxStanding(await this.reader.find(task.sandboxId), task.sandboxMade);
      switch (standing.do) {
        case 'go-on':
          return await this.tasks.note(task, { notes: withDetail(task.notes, standing.detail) });
        case 'fail':
          throw new StartFailure(standing.reason);
        case 'wait':
          task = await this.tasks.note(task, { detail: standing.detail });
          await this.changes.wait(task.sandboxId, LOOK_MS, signal);
          break;
        case 'make':
        case 'resume': {
          const outcome = await this.maker[standing.do](task);
          task = outcome.task;
          if (!outcome.placed) {
            await this.changes.wait(task.sandboxId, PLACE_MS, signal);
          }
        }
      }
    }
  }
}

/** What the sandbox says of itself holds the notes that it was made with. */
function withDetail(notes: readonly string[], detail: string | null): string[] {
  return detail === null ? [...notes] : [detail, ...notes.filter((note) => !detail.includes(note))];
}
