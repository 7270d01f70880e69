import { describe, expect, it } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import { addressOf } from '../support/resolved-document.js';
import { type Answer, withUnfinishedBody } from '../support/unfinished-body.js';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp();

/** What takes a key or a code in the body, or gives one, which may have two kilobytes at most. */
const TAKES_SECRET = [
  'POST /auth/code',
  'POST /auth/code/key',
  'POST /auth/key',
  'POST /oauth/device/authorize',
  'POST /oauth/device/token',
];
const send = async (operation: string, headers: Record<string, string>, sent: Buffer): Promise<Answer> => {
  const { method, path } = addressOf(operation, '', app.user.id);
  return withUnfinishedBody(`${app.url}${path}`, method, headers, sent);
};

describe('requests without an accepted key', () => {
  it.each(TAKES_SECRET)('may send no more than that to %s', async (operation) => {
    const answer = await send(operation, {}, Buffer.from('{'));

    expect(answer).toMatchObject({ status: 413 });
  });

  it('are refused before their body is unpacked or judged', async () => {
    for (const [headers, body] of [
      [{ 'Content-Encoding': 'gzip' }, Buffer.from('no gzip')],
      [{ 'Content-Encoding': 'unknown' }, Buffer.from('{}')],
      [{ 'Content-Type': 'text/plain' }, Buffer.from('{}')],
      [{ 'Content-Length': '9000000000' }, Buffer.from('{}')],
      [{}, Buffer.from('}')],
    ] as const) {
      const answer = await send('POST /api/settings', headers, body);
      expect(answer).toMatchObject({ status: 401, body: expect.stringContaining('"code":"unauthorized"') });
    }
  });

  it('learn nothing from addresses that do not exist', async () => {
    expect(await send('POST /api/unknown', {}, Buffer.from('}'))).toMatchObject({
      status: 404,
    });
    expect(await send('PUT /api/v1/api-keys', {}, Buffer.from('}'))).toMatchObject({
      status: 405,
    });
  });
});

describe('bodies of those who have a key', () => {
  const post = async (
    body: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${app.url}/api/settings`, {
      method: 'POST',
      headers: { ...app.user.headers, 'Content-Type': 'application/json', ...headers },
      body,
    });
    return { status: response.status, text: await response.text() };
  };

  it('have at most 20,000 values and keys, however small they are', async () => {
    const bomb = `${'['.repeat(62)}${'"",'.repeat(349_000)}""${']'.repeat(62)}`;
    expect(bomb.length).toBeLessThan(1_048_576);

    for (const answer of [
      await post(bomb),
      await post(gzipSync(bomb), { 'Content-Encoding': 'gzip' }),
      await post(JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, key) => [key, 0])))),
    ]) {
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.text)).toMatchObject({
        code: 'payload_too_large',
        detail: 'The request body may have at most 20,000 values and keys.',
      });
    }
    expect((await post(JSON.stringify({ unknown: Array.from({ length: 9_000 }, () => 0) }))).status).toBe(
      200,
    );
  });

  it('are counted as they are sent, also when they unpack to nothing', async () => {
    const empty = gzipSync('');
    const members = Buffer.concat(Array.from({ length: 60_000 }, () => empty));
    expect(members.length).toBeGreaterThan(1_048_576);

    expect((await post(members, { 'Content-Encoding': 'gzip' })).status).toBe(413);
  });
});
