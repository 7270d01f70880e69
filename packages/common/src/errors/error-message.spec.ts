import { describe, expect, it } from '@jest/globals';
import { errorWithCauses } from './error-message.js';

describe('errorWithCauses', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:9'), { code: 'ECONNREFUSED' });
  const twoAttempts = Object.assign(new AggregateError([refused, new Error('connect EHOSTUNREACH ::1:9')]), {
    code: 'ECONNREFUSED',
  });
  const circle = new Error('round');
  circle.cause = new Error('and round', { cause: circle });

  it.each<[unknown, string]>([
    [new Error('alone'), 'alone'],
    ['a text', 'a text'],
    [new TypeError('fetch failed', { cause: refused }), 'fetch failed: connect ECONNREFUSED 127.0.0.1:9'],
    [
      new TypeError('fetch failed', { cause: twoAttempts }),
      'fetch failed: ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:9: connect EHOSTUNREACH ::1:9',
    ],
    [new Error('outer: inner', { cause: new Error('inner') }), 'outer: inner'],
    [new Error('outer', { cause: { code: 7 } }), 'outer'],
    [circle, 'round: and round'],
  ])('of %p is %p', (error, text) => {
    expect(errorWithCauses(error)).toBe(text);
  });
});
