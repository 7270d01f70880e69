import { describe, expect, it } from '@jest/globals';
import { waitsForUser } from './confirmation.js';

describe('waitsForUser', () => {
  it.each([
    ['never', true, 'HIGH', false],
    ['always', true, 'LOW', true],
    ['always', false, 'HIGH', false],
    ['risky', true, 'LOW', false],
    ['risky', true, 'MEDIUM', false],
    ['risky', true, 'HIGH', true],
    ['risky', true, 'UNKNOWN', true],
    ['risky', false, 'UNKNOWN', false],
  ] as const)('%s, tool that asks %s, risk %s: %s', (policy, asks, risk, waits) => {
    expect(waitsForUser(policy, asks, risk)).toBe(waits);
  });
});
