/** Statuses of a row. Clients see fewer: `toWireStatus`. */
export const SANDBOX_ROW_STATUSES = [
  'STARTING',
  'RUNNING',
  'PAUSING',
  'PAUSED',
  'ERROR',
  'MISSING',
  'DELETING',
] as const;
export type SandboxRowStatus = (typeof SANDBOX_ROW_STATUSES)[number];

/** Statuses that clients see. */
export const SANDBOX_STATUSES = ['STARTING', 'RUNNING', 'PAUSED', 'ERROR', 'MISSING'] as const;
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number];

const WIRE: Record<SandboxRowStatus, SandboxStatus> = {
  STARTING: 'STARTING',
  RUNNING: 'RUNNING',
  // It was asked to pause, and runs until the backend has stopped it.
  PAUSING: 'RUNNING',
  PAUSED: 'PAUSED',
  ERROR: 'ERROR',
  MISSING: 'MISSING',
  DELETING: 'MISSING',
};

/**
 * What was last observed of a sandbox, whatever it was asked to do.
 *
 * @param status null: there is no row, which clients see as MISSING
 * @param address of its agent server; null: it has not answered since the last start
 */
export function toWireStatus(status: SandboxRowStatus | null, address: string | null): SandboxStatus {
  if (status === 'PAUSING' && address === null) {
    return 'STARTING';
  }
  return status === null ? 'MISSING' : WIRE[status];
}

/** SQL: whether clients see a sandbox as RUNNING, with its addresses and its key. */
export function isShownRunning(table: string): string {
  return `(${table}.status = 'RUNNING' OR ${table}.status = 'PAUSING' AND ${table}.address IS NOT NULL)`;
}

/** What can happen to a sandbox. */
export type SandboxTransition =
  /** Somebody wants it to run (again). */
  | 'resume'
  /** Its user, the idle reaper or the quota wants it to stop and to keep its files. */
  | 'pause'
  /** Its user wants it gone, or it has outlived the retention time. */
  | 'remove'
  /** Its agent server answered after a start. */
  | 'started'
  /** It has been stopped as requested. */
  | 'paused'
  /** It could not be started or stopped, or it exited by itself. */
  | 'fail'
  /** The backend no longer has its files. */
  | 'vanish'
  /** The backend has its files again. */
  | 'appear';

interface TransitionRule {
  from: readonly SandboxRowStatus[];
  to: SandboxRowStatus;
}

const RULES: Record<SandboxTransition, TransitionRule> = {
  // From MISSING too: the start finds out whether the files are still missing.
  resume: { from: ['PAUSING', 'PAUSED', 'ERROR', 'MISSING'], to: 'STARTING' },
  pause: { from: ['STARTING', 'RUNNING'], to: 'PAUSING' },
  remove: { from: SANDBOX_ROW_STATUSES.filter((status) => status !== 'DELETING'), to: 'DELETING' },
  started: { from: ['STARTING'], to: 'RUNNING' },
  paused: { from: ['PAUSING'], to: 'PAUSED' },
  fail: { from: ['STARTING', 'RUNNING', 'PAUSING'], to: 'ERROR' },
  vanish: { from: ['PAUSED', 'ERROR'], to: 'MISSING' },
  appear: { from: ['MISSING'], to: 'PAUSED' },
};

/** A row with a status that is not in `from` is left as it is. */
export function transitionRule(transition: SandboxTransition): TransitionRule {
  return RULES[transition];
}

/** Null when the transition is not allowed from this status. */
export function statusAfter(transition: SandboxTransition, from: SandboxRowStatus): SandboxRowStatus | null {
  const rule = RULES[transition];
  return rule.from.includes(from) ? rule.to : null;
}

/** Statuses that a worker brings to an end. The lease in the row sees to it that only one worker does. */
export const TRANSITIONAL_STATUSES = ['STARTING', 'PAUSING', 'DELETING'] as const;
type TransitionalStatus = (typeof TRANSITIONAL_STATUSES)[number];

export function isTransitional(status: SandboxRowStatus): status is TransitionalStatus {
  return TRANSITIONAL_STATUSES.some((transitional) => transitional === status);
}

/** A start has the timeout of its specification instead. */
const PAUSE_TIMEOUT_SECONDS = 120;

/**
 * How long a status may last, in seconds, before it becomes an error; null when it may last for ever. A removal has no
 * deadline: nothing else can be done with the sandbox, so it is tried until it succeeds.
 */
export function deadlineSeconds(status: SandboxRowStatus, startTimeoutSeconds: number): number | null {
  switch (status) {
    case 'STARTING':
      return startTimeoutSeconds;
    case 'PAUSING':
      return PAUSE_TIMEOUT_SECONDS;
    default:
      return null;
  }
}
