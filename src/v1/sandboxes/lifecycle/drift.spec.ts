import { describe, expect, it } from '@jest/globals';
import type { SandboxFacts } from '@slipway/sandboxes/sandbox-backend.js';
import { findDrift, nextPart } from './drift.js';
import type { ExpectedSandbox } from '../sandbox-lifecycle.repository.js';
import { SANDBOX_ROW_STATUSES } from '../sandbox-status.js';

const NOW = 1_000_000;
const OPTIONS = { now: NOW, graceMs: 60_000, firstSeen: new Map([['seen', NOW - 70_000]]) };
const optionsFor = (facts: readonly SandboxFacts[]) => ({
  ...OPTIONS,
  compared: new Set(facts.map(({ id }) => id)),
});
const row = (changes: Partial<ExpectedSandbox> = {}): ExpectedSandbox => ({
  id: 'a',
  status: 'RUNNING',
  address: 'http://127.0.0.1:1',
  ports: { WORKER_1: 'http://127.0.0.1:3' },
  ours: true,
  everStarted: true,
  ...changes,
});
const fact = (changes: Partial<SandboxFacts> = {}): SandboxFacts => ({
  id: 'a',
  state: 'running',
  address: 'http://127.0.0.1:1',
  ports: { WORKER_1: 'http://127.0.0.1:3' },
  exit: null,
  createdAt: 0,
  ...changes,
});

describe('findDrift', () => {
  it.each([
    ['runs as it should', [row()], [fact()], []],
    ['warm', [row({ status: 'WARM', address: null, ports: {} })], [fact()], []],
    ['warm and stopped', [row({ status: 'WARM', address: null })], [fact({ state: 'stopped' })], []],
    ['listens elsewhere', [row()], [fact({ address: 'http://127.0.0.1:2' })], [{ kind: 'moved', id: 'a' }]],
    [
      'has another port elsewhere',
      [row()],
      [fact({ ports: { WORKER_1: 'http://127.0.0.1:4' } })],
      [{ kind: 'moved', id: 'a' }],
    ],
    ['runs since before ports were recorded', [row({ ports: {} })], [fact({ ports: {} })], []],
    ['runs without a known address', [row()], [fact({ address: null })], []],
    ['stopped', [row()], [fact({ state: 'stopped', address: null })], [{ kind: 'ended', id: 'a' }]],
    ['gone', [row()], [], [{ kind: 'ended', id: 'a' }]],
    ['of another backend', [row({ ours: false })], [], [{ kind: 'ended', id: 'a' }]],
    ['paused and runs', [row({ status: 'PAUSED' })], [fact()], [{ kind: 'left-over', id: 'a' }]],
    ['failed and runs', [row({ status: 'ERROR' })], [fact()], [{ kind: 'left-over', id: 'a' }]],
    ['paused and stopped', [row({ status: 'PAUSED' })], [fact({ state: 'stopped' })], []],
    [
      'failed and replaced',
      [row({ status: 'ERROR' })],
      [fact({ state: 'stopped', isReplaced: true })],
      [{ kind: 'left-over', id: 'a' }],
    ],
    ['paused and gone', [row({ status: 'PAUSED' })], [], [{ kind: 'gone', id: 'a' }]],
    ['failed before it had files', [row({ status: 'ERROR', everStarted: false })], [], []],
    ['failed and gone', [row({ status: 'ERROR' })], [], [{ kind: 'gone', id: 'a' }]],
    ['paused elsewhere and gone', [row({ status: 'PAUSED', ours: false })], [], []],
    ['MISSING, as its row says', [row({ status: 'MISSING' })], [], []],
    [
      'MISSING, and back',
      [row({ status: 'MISSING' })],
      [fact({ state: 'stopped' })],
      [{ kind: 'back', id: 'a' }],
    ],
    ['paused elsewhere', [row({ status: 'PAUSED', ours: false })], [fact()], []],
    ['old and without a row', [], [fact({ createdAt: NOW - 60_000 })], [{ kind: 'orphan', id: 'a' }]],
    ['young and without a row', [], [fact({ createdAt: NOW - 59_999 })], []],
    ['of unknown age, just seen', [], [fact({ createdAt: null })], []],
    [
      'of unknown age, seen for long',
      [],
      [fact({ id: 'seen', createdAt: null })],
      [{ kind: 'orphan', id: 'seen' }],
    ],
  ] as const)('%s', (_name, rows, facts, expected) => {
    expect(findDrift(rows, facts, optionsFor(facts))).toEqual(expected);
  });

  it.each(SANDBOX_ROW_STATUSES.filter((status) => ['STARTING', 'PAUSING', 'DELETING'].includes(status)))(
    'leaves %s to its worker',
    (status) => {
      for (const facts of [[], [fact()], [fact({ state: 'stopped' as const })]]) {
        expect(findDrift([row({ status })], facts, optionsFor(facts))).toEqual([]);
      }
    },
  );

  it('takes nothing for an orphan whose row was not looked for', () => {
    expect(findDrift([], [fact()], { ...OPTIONS, compared: new Set() })).toEqual([]);
  });
});

describe('nextPart', () => {
  it('has all that run each time, and stopped ones in parts', () => {
    const facts = [
      ...Array.from({ length: 2_500 }, (_, index) => fact({ id: `s${index}`, state: 'stopped' })),
      fact({ id: 'r1' }),
      fact({ id: 'r2' }),
    ].toReversed();
    const asked: string[][] = [];
    const found: string[][] = [];
    for (let round = 0, until = ''; round < 4; round += 1) {
      const { compared, stoppedUntil } = nextPart(facts, until);
      until = stoppedUntil;
      asked.push([...compared]);
      found.push(findDrift([], facts, { ...OPTIONS, compared }).map(({ id }) => id));
    }

    expect(asked.map((ids) => ids.length)).toEqual([1_002, 1_002, 502, 1_002]);
    expect(new Set(asked.slice(0, 3).flat()).size).toBe(2_502);
    expect(new Set(asked[3])).toEqual(new Set(asked[0]));
    expect(asked.every((ids) => ids.includes('r1') && ids.includes('r2'))).toBe(true);
    expect(found.map((ids) => ids.toSorted())).toEqual(asked.map((ids) => ids.toSorted()));
  });
});
