import { describe, expect, it } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import request from 'supertest';
import { addressOf } from '../support/resolved-document.js';
import { type Answer, withUnfinishedBody } from '../support/unfinished-body.js';
import { useTestApp } from '../support/use-test-app.js';

const MEBIBYTE = 1_048_576;
const NOT_UTF8 = Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]);

/** A valid JSON body of exactly this many bytes. */
function bodyOf(bytes: number): string {
  const frame = '{"name":"","padding":""}';
  return frame.replace('"padding":""', `"padding":"${'x'.repeat(bytes - frame.length)}"`);
}

const app = useTestApp({ CORS_ORIGINS: 'https://app.example.com' });

describe('hostile input', () => {
  const post = (body: string | Buffer, headers: Record<string, string> = {}): request.Test =>
    request(app.url)
      .post('/api/v1/api-keys')
      .set({ ...app.user.headers, 'Content-Type': 'application/json', ...headers })
      .serialize((given: unknown) => given as string)
      .send(body);

  it.each([
    ['NaN', '{"name":NaN}', 'json_invalid', ['body']],
    ['bytes that are not UTF-8', NOT_UTF8, 'json_invalid', ['body']],
    ['a NUL', '{"name":"a\\u0000b"}', 'string_unicode', ['body', 'name']],
    ['a lone surrogate', '{"name":"\\ud800"}', 'string_unicode', ['body', 'name']],
    ['a NUL in a key', '{"a\\u0000":1}', 'string_unicode', ['body']],
    ['10,000 levels', `${'['.repeat(10_000)}${']'.repeat(10_000)}`, 'json_invalid', ['body']],
    ['null', 'null', 'missing', ['body']],
    ['__proto__ instead of members', '{"__proto__":{"name":"x"}}', 'missing', ['body', 'name']],
    ['a number beyond numbers', '{"name":1e999}', 'string_type', ['body', 'name']],
  ])('answers %s with 422', async (_name, body, type, loc) => {
    const response = await post(body);

    expect(response.status).toBe(422);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.body.detail).toMatchObject([{ type, loc }]);
    expect(Object.keys(response.body.detail[0]).toSorted()).toEqual(['loc', 'msg', 'type']);
    expect(({} as { name?: string }).name).toBeUndefined();
  });

  it.each([
    ['a body that cannot be read', '{"name":"a', ['body'], 'json_invalid'],
    ['a wrong value', '{"name":1}', ['body', 'name'], 'string_type'],
  ])('answers %s with a problem document to a client that asks for one', async (_name, body, loc, type) => {
    const response = await post(body, { Accept: 'application/problem+json' }).expect(422);

    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    const problem = JSON.parse(response.text);
    expect(problem).toEqual({
      type: 'urn:slipway:problem:invalid_input',
      title: 'Unprocessable Entity',
      status: 422,
      detail: expect.stringContaining(problem.errors[0].msg),
      error: problem.detail,
      code: 'invalid_input',
      request_id: response.headers['x-request-id'],
      errors: [{ loc, type, msg: expect.any(String) }],
    });
  });

  it('answers an absent body with 422, whatever its type is said to be', async () => {
    for (const headers of [{}, { 'Content-Type': 'text/plain' }]) {
      const response = await request(app.url)
        .post('/api/v1/api-keys')
        .set({ ...app.user.headers, ...headers });
      expect(response.body.detail).toMatchObject([{ type: 'missing', loc: ['body'] }]);
      expect(response.status).toBe(422);
    }
  });

  /** Without a `Content-Length`: only the end of the chunks tells how much there is. */
  const chunked = async (chunks: string[], headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${app.url}/api/v1/api-keys`, {
      method: 'POST',
      headers: { ...app.user.headers, ...headers },
      body: ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk))),
      duplex: 'half',
    });

  it.each<Record<string, string>>([
    {},
    { 'Content-Type': 'text/plain' },
    { 'Content-Type': 'application/json' },
  ])('answers a body of no chunks (%j) with 422', async (headers) => {
    const response = await chunked([], headers);

    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ detail: [{ type: 'missing', loc: ['body'] }] });
  });

  it('reads a body in chunks, and answers one of another type with 415', async () => {
    const chunks = ['{"name":', '"in chunks"}'];

    expect((await chunked(chunks, { 'Content-Type': 'application/json' })).status).toBe(201);
    expect((await chunked(chunks, { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await chunked(chunks)).status).toBe(415);
  });

  it.each([
    ['text/plain', {}],
    ['application/x-www-form-urlencoded', {}],
    ['application/json; charset=utf-16', {}],
    ['application/jsonp', {}],
    ['application/json', { 'Content-Encoding': 'compress' }],
  ])('answers a body of type %s (%j) with 415', async (type, headers) => {
    const response = await post('{"name":"a"}', { 'Content-Type': type, ...headers });

    expect(response.status).toBe(415);
    expect(response.body.code).toBe('unsupported_media_type');
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/merge-patch+json',
  ])('reads %s', async (type) => {
    expect((await post('{"name":"typed"}', { 'Content-Type': type })).status).toBe(201);
  });

  it('reads a body of exactly one MiB and answers one byte more with 413', async () => {
    expect((await post(bodyOf(MEBIBYTE))).body.detail).toMatchObject([{ loc: ['body', 'name'] }]);

    const response = await post(bodyOf(MEBIBYTE + 1));
    expect(response.status).toBe(413);
    expect(response.body.code).toBe('payload_too_large');
  });

  it('counts what a compressed body unfolds to', async () => {
    const response = await post(gzipSync(bodyOf(MEBIBYTE + 1)), { 'Content-Encoding': 'gzip' });

    expect(response.status).toBe(413);
  });

  it.each([
    ['/%E0%A4%A', 404],
    ['/api/v1/users/%ZZ', 404],
    ['/api/v1/users/%00', 422],
    ['/api/v1/api-keys?user_id[$ne]=1', 200],
    ['/api/v1/api-keys?user_id=%ED%A0%80', 422],
    ['/api/v1/users?email__eq=%00', 422],
    ['/api/v1/users?page_id=%00', 422],
  ])('answers %s with %d', async (path, status) => {
    const method = /\/%..$/.test(path) ? 'delete' : 'get';
    const response = await app.as(app.admin).ask(method, path);

    expect(response.status).toBe(status);
  });

  it('answers an unknown method with 405 and what is allowed', async () => {
    const response = await app.as(app.user).put('/api/v1/api-keys', {});

    expect(response.status).toBe(405);
    expect(response.headers['allow']).toBe('GET, HEAD, POST');
    expect(response.body.code).toBe('method_not_allowed');
  });

  it.each(['/unknown', '/api/unknown'])('says where to look instead of %s', async (address) => {
    const { body } = await app.as(app.user).get(address).expect(404);

    expect(body).toMatchObject({ code: 'not_found', status: 404, detail: expect.stringContaining('/docs') });
  });

  it.each([
    ['req-1.a:b_c', 'req-1.a:b_c'],
    ['line\tbreak', null],
    ['x'.repeat(129), null],
  ])('takes over the request id %j only when it is harmless', async (given, expected) => {
    const { headers } = await request(app.url).get('/alive').set('X-Request-Id', given);

    if (expected === null) {
      expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    } else {
      expect(headers['x-request-id']).toBe(expected);
    }
  });

  it('sends security headers and does not say what it is built with', async () => {
    const { headers } = await app.as().get('/alive');

    expect(headers).toMatchObject({
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    expect(headers['x-powered-by']).toBeUndefined();
  });
});

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

describe('members that are not known', () => {
  it('names what it ignores from clients of others, to pages too', async () => {
    const { headers } = await app
      .as(app.user)
      .post('/api/automation/v1/preset/prompt', {
        name: 'Nightly',
        prompt: 'Look at the failing checks.',
        trigger: { type: 'cron', schedule: '0 3 * * *' },
        max_budget: 2,
      })
      .set('Origin', 'https://app.example.com')
      .expect(201);

    expect(headers).toMatchObject({
      'x-ignored-members': 'max_budget',
      'access-control-expose-headers': expect.stringContaining('X-Ignored-Members'),
    });
  });
});
