import { describe, expect, it } from '@jest/globals';
import {
  SANDBOX_ROW_STATUSES,
  type SandboxRowStatus,
  deadlineAt,
  isTransitional,
  type SandboxTransition,
  statusAfter,
} from './sandbox-status.js';

/** Where each transition leads; from any other status it is not possible. */
const TABLE: [SandboxTransition, Partial<Record<SandboxRowStatus, SandboxRowStatus>>][] = [
  ['resume', { PAUSING: 'STARTING', PAUSED: 'STARTING', ERROR: 'STARTING', MISSING: 'STARTING' }],
  ['pause', { STARTING: 'PAUSING', RUNNING: 'PAUSING' }],
  [
    'remove',
    Object.fromEntries(SANDBOX_ROW_STATUSES.filter((s) => s !== 'DELETING').map((s) => [s, 'DELETING'])),
  ],
  ['started', { STARTING: 'RUNNING' }],
  ['paused', { PAUSING: 'PAUSED' }],
  ['fail', { STARTING: 'ERROR', RUNNING: 'ERROR', PAUSING: 'ERROR' }],
  ['vanish', { PAUSED: 'MISSING', ERROR: 'MISSING' }],
  ['appear', { MISSING: 'PAUSED' }],
];

describe('statusAfter', () => {
  it.each(TABLE)('%s', (transition, expected) => {
    const found = Object.fromEntries(
      SANDBOX_ROW_STATUSES.map((from) => [from, statusAfter(transition, from)]),
    );

    const nowhere = Object.fromEntries(SANDBOX_ROW_STATUSES.map((from) => [from, null]));
    expect(found).toEqual({ ...nowhere, ...expected });
  });

  it('leads out of every transitional status', () => {
    for (const status of SANDBOX_ROW_STATUSES.filter(isTransitional)) {
      const ends = TABLE.map(([transition]) => statusAfter(transition, status));

      expect(status === 'DELETING' || ends.some((end) => end !== null && !isTransitional(end))).toBe(true);
    }
  });
});

describe('deadlineAt', () => {
  it.each([
    ['STARTING', new Date(46_000)],
    ['PAUSING', new Date(121_000)],
    ['DELETING', null],
    ['RUNNING', null],
    ['PAUSED', null],
    ['ERROR', null],
  ] as const)('%s: %s', (status, deadline) => {
    expect(deadlineAt(status, 1_000, 45)).toEqual(deadline);
  });
});
