import { describe, expect, it } from '@jest/globals';
import { problemMediaType } from './problem.js';

describe('problemMediaType', () => {
  it.each([
    'application/problem+json',
    'Application/Problem+JSON',
    'application/json, application/problem+json',
    'application/problem+json;q=0.5, */*',
    'application/problem+json; charset=utf-8; q=0.01',
  ])('is that of RFC 9457 for who names it: %s', (accept) => {
    expect(problemMediaType(accept)).toBe('application/problem+json');
  });

  it.each([
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/json, text/plain, */*',
    'text/html,application/xhtml+xml,*/*;q=0.8',
    'application/problem+xml',
    'application/problem+json;q=0',
    'application/problem+json; q=0.000, application/json',
    'text/plain; note=application/problem+json',
  ])('is JSON for everybody else: %s', (accept) => {
    expect(problemMediaType(accept)).toBe('application/json');
  });
});
