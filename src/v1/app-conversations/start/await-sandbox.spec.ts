import { describe, expect, it } from '@jest/globals';
import { nextSandboxAction, type SandboxSnapshot, type SandboxNextAction } from './await-sandbox.js';

const DETAIL = 'Pulling image: 3 of 7 layers';

describe('sandboxStanding', () => {
  it.each([
    [null, false, { do: 'make' }],
    [null, true, { do: 'fail', reason: 'The sandbox has been deleted.' }],
    ['RUNNING', true, { do: 'go-on', detail: DETAIL }],
    ['STARTING', true, { do: 'wait', detail: DETAIL }],
    ['PAUSING', true, { do: 'wait', detail: expect.stringMatching(/paused/) }],
    ['PAUSED', true, { do: 'resume' }],
    ['ERROR', true, { do: 'fail', reason: `The sandbox failed: ${DETAIL}` }],
    ['MISSING', true, { do: 'fail', reason: `The sandbox is MISSING: ${DETAIL}` }],
    ['DELETING', true, { do: 'fail', reason: 'The sandbox is being deleted.' }],
  ] as [SandboxSnapshot['status'], boolean, SandboxNextAction][])(
    '%s (made: %s)',
    (status, made, expected) => {
      expect(nextSandboxAction({ status, statusDetail: DETAIL }, made)).toEqual(expected);
    },
  );
});
