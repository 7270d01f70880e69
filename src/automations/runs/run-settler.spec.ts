import { describe, expect, it } from '@jest/globals';
import { Automation } from '../definitions/automation.repository.js';
import { type ConversationOfRun, endOfRun } from './run-settler.js';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const RUN = { startedAt: new Date(NOW - 60_000), work: new Automation().work };
const METRICS = {
  model_name: 'm',
  accumulated_cost: 0.5,
  max_budget_per_task: null,
  accumulated_token_usage: null,
};

function held(
  execution_status: NonNullable<ConversationOfRun['conversation']>['execution_status'],
  members: Partial<NonNullable<ConversationOfRun['conversation']>> = {},
): ConversationOfRun {
  return {
    start: { status: 'READY', detail: null },
    conversation: {
      execution_status,
      error: null,
      sandbox_status: 'RUNNING',
      metrics: METRICS,
      ...members,
    },
  };
}

const starts = (start: ConversationOfRun['start']): ConversationOfRun => ({ start, conversation: null });
const STARTING = starts({ status: 'WAITING_FOR_SANDBOX', detail: null });
const FAILED_START = starts({ status: 'ERROR', detail: 'No such branch.' });
const GONE = starts(null);
const REFUSED = held('error', { error: { code: 'Refused', detail: 'no key' } });
const NO_SANDBOX = { sandbox_status: null };

describe('a run', () => {
  it.each<[string, ConversationOfRun[], string | null, string | null]>([
    ['goes on while its conversation starts', [STARTING], null, null],
    ['goes on while it works', [held('running')], null, null],
    ['goes on while it is paused', [held('paused', { sandbox_status: 'PAUSED' })], null, null],
    ['goes on while one of two works', [held('finished'), held('running')], null, null],
    ['is completed with all of them', [held('finished'), held('finished')], 'COMPLETED', null],
    ['is completed although the sandbox is gone', [held('finished', NO_SANDBOX)], 'COMPLETED', null],
    ['fails with a start', [FAILED_START], 'FAILED', 'No such branch.'],
    ['fails with one of two', [held('finished'), FAILED_START], 'FAILED', 'No such branch.'],
    ['fails without its conversation', [GONE], 'FAILED', 'Its conversation was deleted.'],
    ['fails with what the conversation says', [REFUSED], 'FAILED', 'Refused: no key'],
    ['fails when it is stuck', [held('stuck')], 'FAILED', 'Its conversation ended with stuck.'],
    [
      'fails without its sandbox',
      [held('running', NO_SANDBOX)],
      'FAILED',
      'The sandbox of its conversation is gone.',
    ],
  ])('%s', (_what, conversations, status, detail) => {
    const end = endOfRun(RUN, conversations, NOW);
    expect([end?.status ?? null, end?.detail ?? null]).toEqual([status, detail]);
  });

  it.each([
    ['its budget', { timeout: null, max_budget_per_run: 0.4 }, 'more than 0.4 USD'],
    ['its timeout', { timeout: 59, max_budget_per_run: null }, 'longer than 59 s'],
  ])('is stopped beyond %s', (_what, work, detail) => {
    expect(endOfRun({ ...RUN, work: { ...RUN.work, ...work } }, [held('running')], NOW)).toEqual({
      status: 'FAILED',
      detail: expect.stringContaining(detail),
      stops: true,
    });
    const within = { ...RUN.work, timeout: 61, max_budget_per_run: 0.6 };
    expect(endOfRun({ ...RUN, work: within }, [held('running')], NOW)).toBeNull();
  });
});
