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

export const SANDBOX_STATUSES = ['STARTING', 'RUNNING', 'PAUSED', 'ERROR', 'MISSING'] as const;
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number];

const WIRE: Record<SandboxRowStatus, SandboxStatus> = {
  STARTING: 'STARTING',
  RUNNING: 'RUNNING',
  // It runs until the backend has stopped it.
  PAUSING: 'RUNNING',
  PAUSED: 'PAUSED',
  ERROR: 'ERROR',
  MISSING: 'MISSING',
  DELETING: 'MISSING',
};

/** What was last observed, whatever was requested. Without a row it is MISSING; `address` is null until it answers. */
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

export type SandboxTransition =
  | 'resume'
  | 'pause'
  | 'remove'
  | 'started'
  | 'paused'
  /** It could not be started or stopped, or it exited by itself. */
  | 'fail'
  /** The backend no longer has its files. */
  | 'vanish'
  | 'appear';

interface TransitionRule {
  from: readonly SandboxRowStatus[];
  to: SandboxRowStatus;
}

/** A row with a status that is not in `from` is left as it is. */
export const TRANSITION_RULES: Record<SandboxTransition, TransitionRule> = {
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

/** Returns null when the transition is not allowed from this status. */
export function statusAfter(transition: SandboxTransition, from: SandboxRowStatus): SandboxRowStatus | null {
  const rule = TRANSITION_RULES[transition];
  return rule.from.includes(from) ? rule.to : null;
}

/** Statuses that a worker brings to an end; the row's lease admits one worker. */
export const TRANSITIONAL_STATUSES = ['STARTING', 'PAUSING', 'DELETING'] as const;
type TransitionalStatus = (typeof TRANSITIONAL_STATUSES)[number];

export function isTransitional(status: SandboxRowStatus): status is TransitionalStatus {
  return TRANSITIONAL_STATUSES.some((transitional) => transitional === status);
}

/** A start has the timeout of its specification instead. */
const PAUSE_TIMEOUT_SECONDS = 120;

/** The time at which a status becomes an error; null for none. A removal is tried until it succeeds. */
export function deadlineAt(status: SandboxRowStatus, now: number, startTimeoutSeconds: number): Date | null {
  switch (status) {
    case 'STARTING':
      return new Date(now + startTimeoutSeconds * 1000);
    case 'PAUSING':
      return new Date(now + PAUSE_TIMEOUT_SECONDS * 1000);
    default:
      return null;
  }
}
