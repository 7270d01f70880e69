import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { newSessionKey } from '../../src/v1/sandboxes/session-key.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { startListening } from '../support/start-listening.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const MIB = 1024 * 1024;
/** What connections may hold (Linux: tcp_rmem and tcp_wmem allow 36 MiB each), and less than a file that is read whole. */
const BUFFERED = 160 * MIB;
const LINE = Buffer.from('a line of "text"\n'.repeat(4_000));
const CHUNK = Buffer.concat(Array.from({ length: 16 }, () => LINE));

const app = useTestApp();
let user: TestUser;
let agent: Server;
let hex: string;
let respond: (response: ServerResponse) => void;
/** Of this test: what the one before it still sends is counted apart. */
let sent: { bytes: number };

beforeEach(async () => {
  sent = { bytes: 0 };
  agent = createServer((_request, response) => respond(response));
  const address = `http://127.0.0.1:${await startListening(agent)}`;
  user = await app.createUser();
  const rows = new ConversationRows(app);
  const sandbox = await rows.sandbox(user.id, { key: newSessionKey(), address });
  hex = (await rows.conversation(user.id, { sandboxId: sandbox.id, workingDir: '/workspace' })).hex;
});

afterEach(() => {
  agent.closeAllConnections();
  agent.close();
});

/** Sends a file without an end, as far as it is read. */
function sendEndless(response: ServerResponse): void {
  const counted = sent;
  const source = new Readable({
    read() {
      counted.bytes += CHUNK.length;
      this.push(CHUNK);
    },
  });
  source.pipe(response);
  response.on('close', () => source.destroy());
}

async function open(method = 'GET', headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const outgoing = get(`${app.url}/api/v1/app-conversations/${hex}/file?file_path=a.txt`, {
    method,
    headers: { ...user.headers, ...headers },
    agent: false,
  });
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return response;
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
  }
  return text;
}

describe('a file of a conversation', () => {
  it('is sent as it is read, so that a client that does not read costs no memory', async () => {
    respond = sendEndless;
    const response = await open();
    expect([response.statusCode, response.headers['content-type']]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    // What is on its way fills the buffers of three connections, and then it stops.
    let before = -1;
    await until(async () => {
      const unchanged = sent.bytes > 0 && sent.bytes === before;
      before = sent.bytes;
      await delay(50);
      return unchanged;
    });
    response.destroy();

    expect(sent.bytes).toBeLessThan(BUFFERED);
    await until(async () => (await connections(agent)) === 0);
  });

  it('is refused before it is read when it is too large for one string', async () => {
    respond = (response) => {
      response.setHeader('content-length', 300 * MIB);
      sendEndless(response);
    };
    const response = await open();
    expect(response.statusCode).toBe(413);
    expect(JSON.parse(await textOf(response))).toMatchObject({
      code: 'payload_too_large',
      detail: expect.stringMatching(
        /^The file has 300 MiB; at most 256 MiB .* GET \/api\/v1\/sandboxes\/\w+\/agent-server\/api\/file\/download/,
      ),
    });
    expect(sent.bytes).toBeLessThan(BUFFERED);
  });

  it('breaks off beyond that size where none was announced, also when it is asked for as bytes', async () => {
    respond = sendEndless;
    const response = await open('GET', { Accept: 'application/octet-stream' });
    let received = 0;
    const counting = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        received += chunk.length;
        done();
      },
    });
    await expect(pipeline(response, counting)).rejects.toThrow('aborted');
    expect(received).toBeLessThanOrEqual(256 * MIB);
  });

  it('does not look complete when it breaks off', async () => {
    respond = (response) => {
      response.writeHead(200);
      response.write(LINE, () => response.destroy());
    };
    await expect(open().then(textOf)).rejects.toThrow('aborted');
  });

  const BINARY: [string, Buffer][] = [
    ['every byte', Buffer.from(Array.from({ length: 4_096 }, (_, index) => index % 256))],
    ['a few bytes', Buffer.from([0x89, 0x50, 0x4e, 0x47])],
    ['Latin-1', Buffer.from('caf\u00e9', 'latin1')],
    ['a text of another encoding', Buffer.from('\ufeffsome text', 'utf16le')],
    ['zeros', Buffer.alloc(300_000)],
    ['much that is no UTF-8', Buffer.alloc(3 * MIB, 0xff)],
  ];

  it.each(BINARY)('is its bytes when it is no text: %s', async (_name, bytes) => {
    respond = (response) => response.end(bytes);
    const response = await open();
    expect([response.statusCode, response.headers]).toEqual([
      200,
      expect.objectContaining({
        'content-type': 'application/octet-stream',
        'content-disposition': 'attachment',
        'x-content-type-options': 'nosniff',
      }),
    ]);
    expect((await buffer(response)).equals(bytes)).toBe(true);
  });

  it.each([
    ['short', 'caf\u00e9 \u2615'],
    ['empty', ''],
    [
      'with a character where its beginning ends',
      `${'x'.repeat(64 * 1024 - 1)}\u2615${'\u00e9'.repeat(70_000)}`,
    ],
  ])('is a string when it is a text: %s', async (_name, text) => {
    respond = (response) => response.end(text);
    const response = await open();
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse((await buffer(response)).toString('utf8'))).toBe(text);
    const bytes = await open('GET', { accept: 'application/octet-stream' });
    expect(bytes.headers['content-type']).toBe('application/octet-stream');
    expect((await buffer(bytes)).toString('utf8')).toBe(text);
  });

  it('is never another text than it is', async () => {
    respond = (response) => response.end(Buffer.concat([LINE, LINE, Buffer.from([0xff]), LINE]));
    await expect(open().then(textOf)).rejects.toThrow('aborted');
  });

  it('breaks off with a reason when nothing was sent of it', async () => {
    respond = (response) => {
      response.writeHead(200);
      response.write('a beginning', () => response.destroy());
    };
    expect((await open()).statusCode).toBe(502);
  });

  it('takes one of eight places of its user, and nobody waits for another one', async () => {
    respond = sendEndless;
    const responses = await Promise.all(Array.from({ length: 8 }, () => open()));
    const ninth = await open();
    expect([ninth.statusCode, ninth.headers['retry-after']]).toEqual([429, '1']);
    expect(JSON.parse(await textOf(ninth))).toMatchObject({ code: 'rate_limited' });
    responses.forEach((response) => response.destroy());
    await until(async () => {
      const next = await open();
      next.destroy();
      return next.statusCode === 200;
    });
  });

  it('is not read for HEAD', async () => {
    respond = sendEndless;
    const response = await open('HEAD');
    expect(response.statusCode).toBe(200);
    response.resume();
    await until(async () => (await connections(agent)) === 0);
    // Its reader ends only beyond the largest file; how much is on its way depends on the machine.
    expect(sent.bytes).toBeLessThan(256 * MIB);
  });
});

async function connections(server: Server): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  return await promise;
}
