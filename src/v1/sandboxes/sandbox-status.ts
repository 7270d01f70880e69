/** Statuses of a row. Those of the wire are fewer: see `toWireStatus`. */
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
  // Nothing more may be sent to it, and it comes to rest by itself.
  PAUSING: 'PAUSED',
  PAUSED: 'PAUSED',
  ERROR: 'ERROR',
  MISSING: 'MISSING',
  DELETING: 'MISSING',
};

/** What clients see of a row's status; no row is MISSING. */
export function toWireStatus(status: SandboxRowStatus | null): SandboxStatus {
  return status === null ? 'MISSING' : WIRE[status];
}
