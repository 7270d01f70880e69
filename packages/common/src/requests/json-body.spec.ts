import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import { until } from '../../../../test/support/until.js';
import {
  type BodyBounds,
  cutUnreadBodies,
  MalformedBodyError,
  parseForm,
  parseJsonBody,
  readJsonBody,
  readRawBody,
  skimJsonBody,
  receiveByDeadline,
} from './json-body.js';

const BOUNDS: BodyBounds = { bytes: 1_000, values: 100 };
const DEADLINE_MS = 100;
const NOT_READ_MS = 50;
/** Longer than any test. */
const NEVER_MS = 600_000;

/** What a reader made of a request. */
type Outcome = { value: unknown } | { reason: string; limit: number | null };

let outcomes: Outcome[];
let notReadMs: number;
let port: number;
let read: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

const server = createServer((request, response) => {
  cutUnreadBodies(notReadMs)(request, response, () => undefined);
  read(request, response)
    .then(
      (value) => outcomes.push({ value }),
      (error: unknown) =>
        outcomes.push(
          error instanceof MalformedBodyError
            ? { reason: error.reason, limit: error.limit }
            : { reason: String(error), limit: null },
        ),
    )
    .finally(() => response.end());
});

beforeEach(async () => {
  outcomes = [];
  notReadMs = NEVER_MS;
  read = async (request, response) => readJsonBody(request, response, BOUNDS);
  port = await startListening(server);
});

afterEach(async () => {
  await stopServer(server);
});

async function send(body: string | Buffer, headers: Record<string, string> = {}): Promise<Outcome[]> {
  const outgoing = httpRequest({
    port,
    host: '127.0.0.1',
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return outcomes;
}

/** A connection on which a request is written by hand. */
function dial(text: string): Socket {
  const socket = connect(port, '127.0.0.1');
  // A reset is one way to be cut.
  socket.on('error', () => undefined).resume();
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${text}`);
  return socket;
}

async function closeOf(socket: Socket): Promise<void> {
  await new Promise((resolve) => {
    socket.once('close', resolve);
  });
}

describe('readJsonBody', () => {
  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['identity', (text: string) => Buffer.from(text)],
  ])('unpacks %s', async (encoding, pack) => {
    expect(await send(pack('{"a":[1,"ü"]}'), { 'Content-Encoding': encoding })).toEqual([
      { value: { a: [1, 'ü'] } },
    ]);
  });

  it.each<[string, string | Buffer, Outcome]>([
    ['a byte order mark', '\uFEFF{"a":1}', { value: { a: 1 } }],
    ['a value that is no object', '5', { value: 5 }],
    ['nothing', '', { value: undefined }],
    ['blanks', '  ', { reason: 'syntax', limit: null }],
    ['half a value', '{"a"', { reason: 'syntax', limit: null }],
    ['other bytes than UTF-8', Buffer.from([0x22, 0xff, 0x22]), { reason: 'encoding', limit: null }],
    ['as many bytes as allowed', `"${'x'.repeat(998)}"`, { value: 'x'.repeat(998) }],
    ['one byte more', `"${'x'.repeat(999)}"`, { reason: 'too_large', limit: 1_000 }],
    ['many values', `[${'1,'.repeat(100)}1]`, { reason: 'too_many_values', limit: 100 }],
    ['deep lists', '['.repeat(65), { reason: 'too_deep', limit: 64 }],
  ])('of %s', async (_name, body, outcome) => {
    expect(await send(body)).toEqual([outcome]);
    // Without a length, in chunks.
    outcomes = [];
    expect(await send(body, { 'Transfer-Encoding': 'chunked' })).toEqual([outcome]);
  });

  it.each([
    ['a body that unpacks to more', gzipSync('x'.repeat(50_000))],
    ['packed bytes that unpack to nothing', Buffer.concat(Array.from({ length: 60 }, () => gzipSync('')))],
  ])('stops in %s', async (_name, body) => {
    expect(await send(body, { 'Content-Encoding': 'gzip', 'Transfer-Encoding': 'chunked' })).toEqual([
      { reason: 'too_large', limit: 1_000 },
    ]);
  });

  it('refuses packed bytes that end too early or are none', async () => {
    const packed = gzipSync('{"a":1}');
    await send(packed.subarray(0, 12), { 'Content-Encoding': 'gzip' });
    await send('{"a":1}', { 'Content-Encoding': 'gzip' });

    expect(outcomes).toEqual([
      { reason: 'syntax', limit: null },
      { reason: 'syntax', limit: null },
    ]);
  });

  it('keeps the connection for further requests after a body that it refused', async () => {
    const socket = dial('Content-Length: 5000\r\n\r\n');
    socket.write('['.repeat(5_000));
    socket.write(
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n5',
    );
    socket.end();
    await closeOf(socket);

    expect(outcomes).toEqual([{ reason: 'too_large', limit: 1_000 }, { value: 5 }]);
  });

  it('cuts a client that stops in the middle of its body', async () => {
    read = async (request, response) =>
      receiveByDeadline(request, DEADLINE_MS, () => readJsonBody(request, response, BOUNDS));
    const socket = dial('Content-Length: 10\r\n\r\n{"a"');
    await closeOf(socket);

    expect(outcomes).toEqual([{ reason: 'aborted', limit: null }]);
  });

  it('does not wait for a client that has left before its turn', async () => {
    const left = Promise.withResolvers<void>();
    read = async (request, response) => {
      request.on('error', () => undefined).once('close', left.resolve);
      await left.promise;
      return await readJsonBody(request, response, BOUNDS);
    };
    const socket = dial('Content-Length: 10\r\n\r\n{"a"');
    await once(server, 'request');
    socket.destroy();
    await left.promise;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });

    expect(outcomes).toEqual([{ reason: 'aborted', limit: null }]);
  });
});

describe('skimJsonBody', () => {
  beforeEach(() => {
    read = async (request) => skimJsonBody(request, BOUNDS);
  });

  it.each<[string, Outcome]>([
    ['[{"a":1}]', { value: 'list' }],
    ['{}', { value: 'object' }],
    ['5', { value: 'other' }],
    ['', { value: null }],
    ['[', { reason: 'syntax', limit: null }],
    ['["]', { reason: 'syntax', limit: null }],
    [`[${'1,'.repeat(100)}1]`, { reason: 'too_many_values', limit: 100 }],
  ])('of %s', async (body, outcome) => {
    expect(await send(body)).toEqual([outcome]);
  });

  it('takes no packed body', async () => {
    expect(await send(gzipSync('[]'), { 'Content-Encoding': 'gzip' })).toEqual([
      { reason: 'media_type', limit: null },
    ]);
  });
});

describe('readRawBody', () => {
  beforeEach(() => {
    read = async (request) => readRawBody(request, BOUNDS.bytes);
  });

  it.each<[string, Buffer, Outcome]>([
    ['what is packed', gzipSync('[]'), { value: gzipSync('[]') }],
    ['nothing', Buffer.alloc(0), { value: Buffer.alloc(0) }],
    ['as many bytes as allowed', Buffer.alloc(1_000), { value: Buffer.alloc(1_000) }],
    ['one byte more', Buffer.alloc(1_001), { reason: 'too_large', limit: 1_000 }],
  ])('of %s', async (_name, body, outcome) => {
    expect(await send(body, { 'Content-Encoding': 'gzip' })).toEqual([outcome]);
    outcomes = [];
    expect(await send(body, { 'Transfer-Encoding': 'chunked' })).toEqual([outcome]);
  });

  it('of a client that leaves', async () => {
    const socket = dial('Content-Length: 10\r\n\r\n{"a"');
    await once(server, 'request');
    socket.destroy();
    await until(() => outcomes.length === 1);
    expect(outcomes).toEqual([{ reason: 'aborted', limit: null }]);
  });
});

it.each([
  ['', 'syntax'],
  ['{', 'syntax'],
  [']', 'syntax'],
  ['['.repeat(65), 'too_deep'],
  [`[${'1,'.repeat(100)}1]`, 'too_many_values'],
])('parseJsonBody refuses %s', (text, reason) => {
  expect(() => parseJsonBody(text, BOUNDS.values)).toThrow(expect.objectContaining({ reason }));
  expect(parseJsonBody('{"a":[1]}', BOUNDS.values)).toEqual({ a: [1] });
});

it.each<[string, string, Record<string, string>]>([
  ['as GitHub sends it', 'payload=%7B%22a%22%3A%22b+c%26%C3%A9%22%7D', { payload: '{"a":"b c&é"}' }],
  ['the first of equal fields', 'a=1&a=2&b', { a: '1', b: '' }],
  ['names of objects', '__proto__=1', { ['__proto__']: '1' }],
  ['what is badly escaped', 'a=%&b=%f', { a: '%', b: '%f' }],
  ['no field beyond the hundredth', `${'a=1&'.repeat(100)}b=2`, { a: '1' }],
  ['nothing', '', {}],
])('parseForm reads %s', (_what, text, fields) => {
  expect(parseForm(text)).toStrictEqual(fields);
});

describe('cutUnreadBodies', () => {
  it('cuts a client that goes on with a body that nobody reads', async () => {
    notReadMs = NOT_READ_MS;
    read = () => Promise.resolve();
    const socket = dial('Content-Length: 100000000\r\n\r\n');
    const timer = setInterval(() => socket.write('x'.repeat(1_000)), 5);
    await closeOf(socket);
    clearInterval(timer);

    expect(outcomes).toEqual([{ value: undefined }]);
  });

  it.each([
    ['after the answer', () => Promise.resolve()],
    ['before the answer', async (request: IncomingMessage) => await once(request, 'close')],
  ])('forgets a client that leaves %s', async (_, reader) => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    read = reader;
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const asked = once(server, 'request');
    const client = dial('Content-Length: 100\r\n\r\nx');
    const [connection] = await connected;
    await asked;
    if (reader.length === 0) {
      await once(client, 'data');
    }
    client.destroy();
    await closeOf(connection);

    await until(() => outcomes.length === 1 && timers() <= before);
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
