import { describe, expect, it } from '@jest/globals';
import { ApiServerError, ApiServerOutages, pauseBefore } from './api-server.js';

const FORBIDDEN = new ApiServerError('RBAC: role "slipway" not found', 403, 'Forbidden');
const SOON_MS = 29_000;
const LATER_MS = 31_000;

describe('ApiServerOutages', () => {
  it('takes a refusal of rights as final where the API server was never away', () => {
    const outages = new ApiServerOutages();
    expect(outages.judge(FORBIDDEN, 0)).toBe(FORBIDDEN);
    expect(FORBIDDEN.isTemporary).toBe(false);
  });

  it.each([
    ['did not answer', new Error('connect ECONNREFUSED'), SOON_MS, true],
    ['answered 503', new ApiServerError('no backend', 503, null), SOON_MS, true],
    ['did not answer long ago', new Error('connect ECONNREFUSED'), LATER_MS, false],
    ['was busy', new ApiServerError('too many requests', 429, 'TooManyRequests'), SOON_MS, false],
    ['knew no such object', new ApiServerError('not found', 404, 'NotFound'), SOON_MS, false],
  ])('judges a refusal of rights after it %s', (_when, before, afterMs, isTemporary) => {
    const outages = new ApiServerOutages();
    outages.judge(before, 0);
    const failure = outages.judge(FORBIDDEN, afterMs);
    expect(failure.isTemporary).toBe(isTemporary);
    expect(failure.message).toContain('role "slipway" not found');
  });

  it('judges a refusal of credentials like one of rights', () => {
    const outages = new ApiServerOutages();
    const unauthorized = new ApiServerError('Unauthorized', 401, 'Unauthorized');
    expect(outages.judge(unauthorized, 0).isTemporary).toBe(false);
    outages.judge(new Error('connect ECONNREFUSED'), 0);
    expect(outages.judge(unauthorized, SOON_MS).isTemporary).toBe(true);
    expect(outages.judge(unauthorized, LATER_MS).isTemporary).toBe(false);
  });

  it('keeps other failures as they are', () => {
    const outages = new ApiServerOutages();
    outages.judge(new Error('read ECONNRESET'), 0);
    const gone = new ApiServerError('too old', 410, 'Expired');
    expect(outages.judge(gone, 1)).toBe(gone);
  });
});

describe('pauseBefore', () => {
  it.each([
    [0, 50, 100],
    [3, 400, 800],
    [20, 2_500, 5_000],
  ])('is longer with each attempt, up to a bound: %i', (attempt, least, most) => {
    const pause = pauseBefore(attempt, null);
    expect([pause >= least, pause <= most]).toEqual([true, true]);
    expect(pauseBefore(attempt, new ApiServerError('busy', 429, null, 7))).toBe(7);
  });
});
