import { describe, expect, it } from '@jest/globals';
import { readJson } from './response-body.js';

const ORIGIN = 'https://git.example.com';

describe('readJson', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/vnd.github+json',
    'application/problem+json;charset=utf-8',
    'text/json',
  ])('reads %s', async (type) => {
    const response = new Response('{"a":[1]}', { headers: { 'content-type': type } });

    expect(await readJson(response, ORIGIN)).toEqual({ a: [1] });
  });

  it.each([
    ['HTML', 'text/html', '<html>secret</html>'],
    ['JSON of another type', 'text/plain', '{"a":1}'],
    ['a type that only looks like JSON', 'application/jsonp', '{"a":1}'],
    ['no type', '', '{"a":1}'],
    ['JSON cut off', 'application/json', '{"secret":"se'],
    ['an empty body', 'application/json', ''],
    ['HTML that claims to be JSON', 'application/json', '<html>secret</html>'],
  ])('refuses %s without repeating it', async (_name, type, body) => {
    const response = new Response(body, { headers: { 'content-type': type } });

    const failure = readJson(response, ORIGIN);

    await expect(failure).rejects.toMatchObject({ reason: 'malformed', origin: ORIGIN });
    await expect(failure).rejects.toThrow(/^Call to https:\/\/git\.example\.com failed: malformed$/);
    await expect(failure).rejects.not.toHaveProperty('cause');
  });
});
