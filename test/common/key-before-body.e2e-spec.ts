import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { buildOpenApiDocument } from '../../src/common/openapi/openapi-document.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';

const WRITING_METHODS = ['post', 'put', 'patch', 'delete'] as const;
/** A value for every parameter of a path: what it names does not matter without a key. */
const ANY_ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

/** What takes a key or a code in the body, or gives one, which may have two kilobytes at most. */
const TAKES_SECRET = [
  'POST /auth/code',
  'POST /auth/code/key',
  'POST /auth/key',
  'POST /oauth/device/authorize',
  'POST /oauth/device/token',
];
/** What does nothing for a browser without a session. */
const SIGN_OUT = 'POST /auth/logout';
/** Instead of a key there is a signature over the whole body. */
const TAKES_SIGNATURE = `POST /api/automation/v1/events/${ANY_ID}/${ANY_ID}`;

/** Everything that the API lets callers change with a key, as `METHOD /path`. */
function writingOperations(): string[] {
  const { paths } = buildOpenApiDocument(app.app);
  return Object.entries(paths)
    .flatMap(([path, operations]) =>
      WRITING_METHODS.filter((method) => operations[method] !== undefined).map(
        (method) => `${method.toUpperCase()} ${path.replaceAll(/\{[^}]+\}/g, ANY_ID)}`,
      ),
    )
    .filter((operation) => ![...TAKES_SECRET, SIGN_OUT, TAKES_SIGNATURE].includes(operation));
}

interface Answer {
  status: number;
  body: string;
}

/** @param sent what of the body is sent; the request claims more and never ends */
async function withUnfinishedBody(
  operation: string,
  headers: Record<string, string>,
  sent: Buffer,
): Promise<Answer> {
  const [method = '', path = ''] = operation.split(' ');
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = httpRequest(`${app.url}${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', 'Content-Length': '1000000', ...headers },
  });
  outgoing.once('error', reject).once('response', (response) => {
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => (body += chunk));
    response.once('end', () => resolve({ status: response.statusCode ?? 0, body }));
  });
  outgoing.write(sent);
  try {
    return await promise;
  } finally {
    outgoing.destroy();
  }
}

describe('requests without an accepted key', () => {
  it('are refused before their body has arrived, whatever they want to change', async () => {
    const operations = writingOperations();
    const answers = await Promise.all(
      operations.map(async (operation) => {
        const { status } = await withUnfinishedBody(operation, {}, Buffer.from('{'));
        return `${operation}: ${status}`;
      }),
    );

    expect(operations.length).toBeGreaterThan(20);
    expect(answers).toEqual(operations.map((operation) => `${operation}: 401`));
  });

  it.each(TAKES_SECRET)('may send no more than that to %s', async (operation) => {
    const answer = await withUnfinishedBody(operation, {}, Buffer.from('{'));

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
      const answer = await withUnfinishedBody('POST /api/settings', headers, body);
      expect(answer).toMatchObject({ status: 401, body: expect.stringContaining('"code":"unauthorized"') });
    }
  });

  it('learn nothing from addresses that do not exist', async () => {
    expect(await withUnfinishedBody('POST /api/unknown', {}, Buffer.from('}'))).toMatchObject({
      status: 404,
    });
    expect(await withUnfinishedBody('PUT /api/v1/api-keys', {}, Buffer.from('}'))).toMatchObject({
      status: 405,
    });
  });

  it('are refused for want of a right before their body is read, too', async () => {
    const answer = await withUnfinishedBody('POST /api/v1/users', app.user.headers, Buffer.from('}'));

    expect(answer).toMatchObject({ status: 403 });
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
