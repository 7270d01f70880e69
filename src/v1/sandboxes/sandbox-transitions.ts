import { SANDBOX_ROW_STATUSES, type SandboxRowStatus } from './sandbox-status.js';

/** What can happen to a sandbox. */
export type SandboxTransition =
  /** Somebody wants it to run (again). */
  | 'resume'
  /** Somebody, idleness or the limit wants it to stop and to keep its files. */
  | 'pause'
  /** Somebody, or the retention time, wants it gone. */
  | 'remove'
  /** Its agent server answered after a start. */
  | 'started'
  /** It has been stopped as asked. */
  | 'paused'
  /** It could not be started or stopped, or ended by itself. */
  | 'fail'
  /** Its files are gone from where sandboxes are. */
  | 'vanish'
  /** Its files are there again. */
  | 'appear';

interface TransitionRule {
  from: readonly SandboxRowStatus[];
  to: SandboxRowStatus;
}

const RULES: Record<SandboxTransition, TransitionRule> = {
  // From MISSING too: the start finds out whether that is still so.
  resume: { from: ['PAUSING', 'PAUSED', 'ERROR', 'MISSING'], to: 'STARTING' },
  pause: { from: ['STARTING', 'RUNNING'], to: 'PAUSING' },
  remove: { from: SANDBOX_ROW_STATUSES.filter((status) => status !== 'DELETING'), to: 'DELETING' },
  started: { from: ['STARTING'], to: 'RUNNING' },
  paused: { from: ['PAUSING'], to: 'PAUSED' },
  fail: { from: ['STARTING', 'RUNNING', 'PAUSING'], to: 'ERROR' },
  vanish: { from: ['PAUSED', 'ERROR'], to: 'MISSING' },
  appear: { from: ['MISSING'], to: 'PAUSED' },
};

/** Statuses that a worker brings to an end; one at a time does, which the lease in the row sees to. */
export const TRANSITIONAL_STATUSES = ['STARTING', 'PAUSING', 'DELETING'] as const;
export type TransitionalStatus = (typeof TRANSITIONAL_STATUSES)[number];

/** How long stopping may take, seconds; a start has its specification's limit. */
const PAUSE_SECONDS = 120;

/** The rule of a transition: a row with any other status is left as it is. */
export function transitionRule(transition: SandboxTransition): TransitionRule {
  return RULES[transition];
}

/** The status after a transition; null when it cannot happen. */
export function statusAfter(transition: SandboxTransition, from: SandboxRowStatus): SandboxRowStatus | null {
  const rule = RULES[transition];
  return rule.from.includes(from) ? rule.to : null;
}

export function isTransitional(status: SandboxRowStatus): status is TransitionalStatus {
  return TRANSITIONAL_STATUSES.some((transitional) => transitional === status);
}

/**
 * How long a status may last, in seconds, before it is an error; null where it may last: a removal is tried until it
 * succeeds, since nothing else can be done with the sandbox.
 */
export function deadlineSeconds(status: SandboxRowStatus, startTimeoutSeconds: number): number | null {
  switch (status) {
    case 'STARTING':
      return startTimeoutSeconds;
    case 'PAUSING':
      return PAUSE_SECONDS;
    default:
      return null;
  }
}
