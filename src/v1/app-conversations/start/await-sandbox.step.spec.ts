import { describe, expect, it } from '@jest/globals';
import { nextSandboxAction, type SandboxNextAction } from './await-sandbox.step.js';
import type { SandboxSnapshot } from '../../sandboxes/sandbox.queries.js';

const DETAIL = 'Pulling image: 3 of 7 layers';

describe('nextSandboxAction', () => {
  it.each([
    [null, false, { action: 'create' }],
    [null, true, { action: 'fail', reason: 'The sandbox has been deleted.' }],
    ['RUNNING', true, { action: 'go-on', detail: DETAIL }],
    ['STARTING', true, { action: 'wait', detail: DETAIL }],
    ['PAUSING', true, { action: 'wait', detail: expect.stringMatching(/paused/) }],
    ['PAUSED', true, { action: 'resume', failure: null }],
    ['ERROR', true, { action: 'fail', reason: `The sandbox failed: ${DETAIL}` }],
    ['MISSING', true, { action: 'fail', reason: `The sandbox is MISSING: ${DETAIL}` }],
    ['DELETING', true, { action: 'fail', reason: 'The sandbox is being deleted.' }],
  ] as [SandboxSnapshot['status'], boolean, SandboxNextAction][])(
    '%s (existed: %s)',
    (status, existed, expected) => {
      const snapshot = { status, statusDetail: DETAIL };
      expect(nextSandboxAction(snapshot, { existed, isRestartable: false })).toEqual(expected);
    },
  );

  it('starts one again that has failed, unless it was made for this start or has been started again', () => {
    const failed = { status: 'ERROR', statusDetail: DETAIL } as const;
    expect(nextSandboxAction(failed, { existed: true, isRestartable: true })).toEqual({
      action: 'resume',
      failure: DETAIL,
    });
  });
});
