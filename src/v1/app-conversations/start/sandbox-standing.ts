import type { SandboxRowStatus } from '../../sandboxes/sandbox-status.js';

/** What is known of a task's sandbox. */
export interface SandboxSight {
  /** Null: there is no row. */
  status: SandboxRowStatus | null;
  statusDetail: string | null;
}

/** What a start does next about its sandbox. */
export type SandboxStanding =
  /** `detail`: what of the settings has no effect in it. */
  | { do: 'go-on'; detail: string | null }
  | { do: 'make' }
  | { do: 'resume' }
  | { do: 'wait'; detail: string | null }
  | { do: 'fail'; reason: string };

/** @param made the sandbox was there once: with no row it is gone */
export function sandboxStanding({ status, statusDetail }: SandboxSight, made: boolean): SandboxStanding {
  switch (status) {
    case null:
      return made ? { do: 'fail', reason: 'The sandbox has been deleted.' } : { do: 'make' };
    case 'RUNNING':
      return { do: 'go-on', detail: statusDetail };
    case 'STARTING':
      return { do: 'wait', detail: statusDetail };
    case 'PAUSING':
      return { do: 'wait', detail: 'The sandbox is being paused; it is resumed after that.' };
    case 'PAUSED':
      return { do: 'resume' };
    case 'ERROR':
      return { do: 'fail', reason: `The sandbox failed: ${statusDetail ?? 'no cause is known'}` };
    case 'MISSING':
      return { do: 'fail', reason: `The sandbox is MISSING: ${statusDetail ?? 'its files are gone'}` };
    case 'DELETING':
      return { do: 'fail', reason: 'The sandbox is being deleted.' };
  }
}
