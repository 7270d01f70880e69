import { describe, expect, it } from '@jest/globals';
import { clientName, refusalOf, shownCode } from './device-logins.service.js';

const BEGAN = 1_000_000;
const PENDING = {
  createdAt: new Date(BEGAN),
  isDenied: false,
  apiKeyId: null,
  polledAt: null,
  intervalSeconds: 5,
};
const polledAt = new Date(BEGAN + 10_000);

describe('refusalOf', () => {
  it.each([
    ['the first request', PENDING, 0, 'authorization_pending'],
    ['a request after the interval', { ...PENDING, polledAt }, 15_000, 'authorization_pending'],
    ['a timer that ran a little early', { ...PENDING, polledAt }, 14_600, 'authorization_pending'],
    ['a request before the interval is over', { ...PENDING, polledAt }, 14_000, 'slow_down'],
    ['an interval that was made longer', { ...PENDING, polledAt, intervalSeconds: 10 }, 15_000, 'slow_down'],
    ['a login that was approved', { ...PENDING, polledAt, apiKeyId: 'a' }, 10_001, null],
    ['one that was refused', { ...PENDING, isDenied: true }, 1, 'access_denied'],
    ['the last millisecond', PENDING, 599_999, 'authorization_pending'],
    ['one that is too old', PENDING, 600_000, 'expired_token'],
    ['one that was approved and is too old', { ...PENDING, apiKeyId: 'a' }, 600_000, 'expired_token'],
  ])('judges %s', (_what, login, after, refusal) => {
    expect(refusalOf(login, BEGAN + after)).toBe(refusal);
  });
});

describe('clientName', () => {
  it.each([
    ['python-httpx/0.28.1', 'python-httpx/0.28.1'],
    ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36', 'Mozilla/5.0'],
    ['  your administrator asks you to press the button', 'your'],
    ['\u202etxt.exe', 'txt.exe'],
    ['<b>', 'b'],
    ['x'.repeat(1000), 'x'.repeat(48)],
    ['…', 'a device'],
    ['', 'a device'],
  ])('makes of %j %j', (text, name) => {
    expect(clientName(text)).toBe(name);
  });
});

describe('shownCode', () => {
  it.each(['BCDF-GHJK', 'bcdfghjk', ' bcdf ghjk\n', 'BCDF–GHJK'])('takes %j', (text) => {
    expect(shownCode(text)).toBe('BCDF-GHJK');
  });
});
