import { describe, expect, it } from '@jest/globals';
import { Readable } from 'node:stream';
import { readSessionKey, takeSessionKeys } from './read-secrets.js';

describe('readSessionKey', () => {
  it('reads one line, whatever follows', async () => {
    expect(await readSessionKey(Readable.from(['{"session_api', '_key":"k"}\n', 'rest']))).toBe('k');
  });

  it.each(['', '\n', 'k\n', '{"session_api_key":""}\n'])('refuses %j without repeating it', async (input) => {
    await expect(readSessionKey(Readable.from([input]))).rejects.toThrow(/must begin with a line of JSON/);
  });
});

it('takes keys out of the environment', () => {
  const env = { OH_SESSION_API_KEYS_1: 'b', OH_SESSION_API_KEYS_0: 'a', SESSION_API_KEY: 'c', OTHER: 'x' };
  expect(takeSessionKeys(env)).toEqual(['a', 'b', 'c']);
  expect(env).toEqual({ OTHER: 'x' });
});
