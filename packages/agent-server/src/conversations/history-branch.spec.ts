import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { EventLog } from '../event-log.js';
import { branchTo, branchUpTo, type Navigation } from './conversation-record.js';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';

const folder = temporaryFolder();
let log: EventLog<AgentEvent>;

beforeEach(async () => {
  log = await EventLog.open(folder('events.jsonl'));
  for (const id of 'abcdef') {
    await log.append(({ timestamp }) => ({ kind: 'PauseEvent', source: 'user', id, timestamp }));
  }
});

afterEach(async () => {
  await log.close();
});

const ids = (events: readonly AgentEvent[] | null) => events?.map(({ id }) => id).join('');

it.each<[string, Navigation[], string]>([
  ['none', [], 'abcdef'],
  ['back to b after four', [{ position: 4, leaf: 'b' }], 'abef'],
  ['to the beginning', [{ position: 4, leaf: null }], 'ef'],
  ['to the end of all', [{ position: 6, leaf: 'c' }], 'abc'],
  [
    'back and back again',
    [
      { position: 2, leaf: 'a' },
      { position: 4, leaf: 'c' },
    ],
    'acef',
  ],
  [
    'to a branch that was left',
    [
      { position: 3, leaf: 'a' },
      { position: 5, leaf: 'c' },
    ],
    'abcf',
  ],
  ['as a damaged record has it', [{ position: 2, leaf: 'e' }], 'abcdecdef'],
])('follows navigations: %s', (_what, navigations, expected) => {
  expect(ids(branchUpTo(log, navigations, log.entries.length))).toBe(expected);
});

it.each([
  ['f', 'abef'],
  ['d', 'abcd'],
  ['a', 'a'],
  ['x', undefined],
])('goes up to %s: %s', (id, expected) => {
  expect(ids(branchTo(log, [{ position: 4, leaf: 'b' }], id))).toBe(expected);
});
