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

const at = (position: number, leaf: string | null): Navigation => ({ position, leaf });
const ids = (events: readonly AgentEvent[] | null) => events?.map(({ id }) => id).join('');

it.each<[string, Navigation[], string]>([
  ['none', [], 'abcdef'],
  ['back to b after four', [at(4, 'b')], 'abef'],
  ['to the beginning', [at(4, null)], 'ef'],
  ['to the end of all', [at(6, 'c')], 'abc'],
  ['back and back again', [at(2, 'a'), at(4, 'c')], 'acef'],
  ['to a branch that was left', [at(3, 'a'), at(5, 'c')], 'abcf'],
  ['as a damaged record has it', [at(2, 'e')], 'abcdecdef'],
])('follows navigations: %s', (_what, navigations, expected) => {
  expect(ids(branchUpTo(log, navigations, log.entries.length))).toBe(expected);
});

it.each([
  ['f', 'abef'],
  ['d', 'abcd'],
  ['a', 'a'],
  ['x', undefined],
])('goes up to %s: %s', (id, expected) => {
  expect(ids(branchTo(log, [at(4, 'b')], id))).toBe(expected);
});
