import { isShownRunning } from '../sandboxes/sandbox-status.js';

export const SHOWN_STATES = [
  'starting',
  'running',
  'waiting',
  'finished',
  'failed',
  'paused',
  'idle',
  'ended',
] as const;
export type ShownState = (typeof SHOWN_STATES)[number];

/** SQL: the user stopped the sandbox, and the conversation has not been resumed since. */
export const IS_STOPPED = 's.stopped_generation = s.generation - 1 AND c.sandbox_generation < s.generation';

/** SQL: the state in one word of {@link SHOWN_STATES}: what the agent does counts while its sandbox runs. */
export const STATE = `CASE
  WHEN s.status IS NULL OR s.status IN ('MISSING', 'DELETING') THEN 'ended'
  WHEN s.status = 'ERROR' OR f.execution_status IN ('error', 'stuck') THEN 'failed'
  WHEN s.status = 'PAUSED' THEN 'paused'
  WHEN NOT ${isShownRunning('s')} THEN 'starting'
  WHEN f.execution_status = 'running' THEN CASE WHEN ${IS_STOPPED} THEN 'paused' ELSE 'running' END
  WHEN f.execution_status = 'waiting_for_confirmation' THEN 'waiting'
  WHEN f.execution_status IN ('paused', 'finished') THEN f.execution_status
  ELSE 'idle' END`;
