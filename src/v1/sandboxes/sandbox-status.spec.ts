import { describe, expect, it } from '@jest/globals';
import {
  SANDBOX_ROW_STATUSES,
  type SandboxRowStatus,
  deadlineSeconds,
  isTransitional,
  type SandboxTransition,
  statusAfter,
} from './sandbox-status.js';

type Row = [SandboxTransition, Record<SandboxRowStatus, SandboxRowStatus | null>];

const TABLE: Row[] = [
  [
    'resume',
    {
      STARTING: null,
      RUNNING: null,
      PAUSING: 'STARTING',
      PAUSED: 'STARTING',
      ERROR: 'STARTING',
      MISSING: 'STARTING',
      DELETING: null,
    },
  ],
  [
    'pause',
    {
      STARTING: 'PAUSING',
      RUNNING: 'PAUSING',
      PAUSING: null,
      PAUSED: null,
      ERROR: null,
      MISSING: null,
      DELETING: null,
    },
  ],
  [
    'remove',
    {
      STARTING: 'DELETING',
      RUNNING: 'DELETING',
      PAUSING: 'DELETING',
      PAUSED: 'DELETING',
      ERROR: 'DELETING',
      MISSING: 'DELETING',
      DELETING: null,
    },
  ],
  [
    'started',
    {
      STARTING: 'RUNNING',
      RUNNING: null,
      PAUSING: null,
      PAUSED: null,
      ERROR: null,
      MISSING: null,
      DELETING: null,
    },
  ],
  [
    'paused',
    {
      STARTING: null,
      RUNNING: null,
      PAUSING: 'PAUSED',
      PAUSED: null,
      ERROR: null,
      MISSING: null,
      DELETING: null,
    },
  ],
  [
    'fail',
    {
      STARTING: 'ERROR',
      RUNNING: 'ERROR',
      PAUSING: 'ERROR',
      PAUSED: null,
      ERROR: null,
      MISSING: null,
      DELETING: null,
    },
  ],
  [
    'vanish',
    {
      STARTING: null,
      RUNNING: null,
      PAUSING: null,
      PAUSED: 'MISSING',
      ERROR: 'MISSING',
      MISSING: null,
      DELETING: null,
    },
  ],
  [
    'appear',
    {
      STARTING: null,
      RUNNING: null,
      PAUSING: null,
      PAUSED: null,
      ERROR: null,
      MISSING: 'PAUSED',
      DELETING: null,
    },
  ],
];

describe('statusAfter', () => {
  it.each(TABLE)('%s', (transition, expected) => {
    const found = Object.fromEntries(
      SANDBOX_ROW_STATUSES.map((from) => [from, statusAfter(transition, from)]),
    );

    expect(found).toEqual(expected);
  });

  it('leads out of every transitional status', () => {
    for (const status of SANDBOX_ROW_STATUSES.filter(isTransitional)) {
      const ends = TABLE.map(([transition]) => statusAfter(transition, status));

      expect(status === 'DELETING' || ends.some((end) => end !== null && !isTransitional(end))).toBe(true);
    }
  });
});

describe('deadlineSeconds', () => {
  it.each([
    ['STARTING', 45],
    ['PAUSING', 120],
    ['DELETING', null],
    ['RUNNING', null],
    ['PAUSED', null],
    ['ERROR', null],
  ] as const)('%s: %s', (status, seconds) => {
    expect(deadlineSeconds(status, 45)).toBe(seconds);
  });
});
