import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startListening } from '../support/start-listening.js';
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from '../support/tls-certificate.js';
import { WebhooksClient } from '../support/webhooks-client.js';

/** What the receiver writes when a request has arrived. */
let answer: (socket: Socket, nth: number) => void;
const requested: string[] = [];
const sockets = new Set<Socket>();
let app: TestApp;
let webhooks: WebhooksClient;
let endpoint: string;
let origin: string;
let selfSignedPort: number;

const receiver = createServer((socket) => {
  let received = '';
  let nth = 0;
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.on('close', () => sockets.delete(socket));
  socket.on('data', (chunk) => {
    received += chunk.toString();
    const [head = '', body] = received.split('\r\n\r\n');
    if (body?.length === Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)) {
      requested.push(head.split(' HTTP', 1)[0] ?? '');
      received = '';
      nth += 1;
      answer(socket, nth);
    }
  });
});

const selfSigned = createTlsServer({ cert: TEST_CERTIFICATE, key: TEST_PRIVATE_KEY });

beforeAll(async () => {
  origin = `http://127.0.0.1:${await startListening(receiver)}`;
  selfSignedPort = await startListening(selfSigned);
  const secure = `127.0.0.1:1,127.0.0.1:${selfSignedPort}`;
  app = await createTestApp({ WEBHOOK_HOST_ALLOWLIST: `${origin},${secure}` });
  webhooks = new WebhooksClient(app, app.user);
  ({ id: endpoint } = await webhooks.create(`${origin}/hook`));
});

beforeEach(() => {
  requested.length = 0;
});

afterEach(() => {
  for (const socket of sockets) {
    socket.destroy();
  }
});

afterAll(async () => {
  await app.close();
  receiver.close();
  selfSigned.close();
});

async function tried(url = `${origin}/hook`): Promise<Record<string, unknown>> {
  await webhooks.call('patch', `/${endpoint}`).send({ url }).expect(200);
  return (await webhooks.call('post', `/${endpoint}/test`).expect(200)).body;
}

// fanout/webhookinbox#13, MrZoller/vantage-point#49: a GET that follows has no event in it, and is answered with 200.
it.each([
  [301, '/hook/'],
  [302, '/login'],
  [303, '/done'],
  [308, '/hook/'],
])('a redirect with status %i takes no delivery, and is not followed', async (status, location) => {
  answer = (socket) =>
    socket.write(
      requested.length === 1
        ? `HTTP/1.1 ${status} Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`
        : 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
    );

  expect(await tried()).toMatchObject({
    status: 'failed',
    last_response_status: status,
    last_error: `The server answered with status ${status}.`,
  });
  expect(requested).toEqual(['POST /hook']);
});

const OK = 'HTTP/1.1 200 OK\r\n';
// hookdeck/outpost#975 and Standard Webhooks: the status is the answer. What failed for its body was sent eleven times.
it.each<[string, string, boolean?]>([
  ['is large', `${OK}content-length: 1000000\r\n\r\n${'x'.repeat(1_000_000)}`],
  ['never ends', `${OK}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n`],
  ['is not compressed as it says', `${OK}content-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello`],
  ['has an unknown encoding', `${OK}content-encoding: zstd\r\ncontent-length: 5\r\n\r\nhello`],
  ['is no valid chunk', `${OK}transfer-encoding: chunked\r\n\r\nzz\r\nhello`],
  ['is cut', `${OK}content-length: 100\r\n\r\nabc`, true],
  ['is deep JSON', `${OK}content-length: 200\r\n\r\n${'['.repeat(100)}${']'.repeat(100)}`],
])('a body that %s changes nothing of the status before it', async (_, text, isEnd = false) => {
  answer = (socket) => (isEnd ? socket.end(text) : socket.write(text));

  expect(await tried()).toMatchObject({ status: 'delivered', last_response_status: 200, last_error: null });
});

it('a status that HTTP does not have is a failure, whatever follows it', async () => {
  answer = (socket) => socket.write('HTTP/1.1 999 Odd\r\ncontent-length: 100000\r\n\r\nabc');

  expect(await tried()).toMatchObject({ status: 'failed', last_error: 'The response is malformed.' });
});

it('a receiver that closes connections which it promised to keep gets the next delivery at once', async () => {
  answer = (socket, nth) =>
    nth === 1 ? socket.write(`${OK}content-length: 0\r\n\r\n`) : socket.resetAndDestroy();
  await tried();

  expect(await tried()).toMatchObject({ status: 'delivered' });
});

// oxidecomputer/omicron#10919, opsmill/infrahub#9718: a name, a port and a certificate are mended in different places.
it('a receiver that cannot be reached is shown with the reason', async () => {
  expect(await tried('https://127.0.0.1:1/')).toMatchObject({
    status: 'failed',
    last_error: 'The server cannot be reached: ECONNREFUSED.',
  });
  expect(await tried(`https://127.0.0.1:${selfSignedPort}/`)).toMatchObject({
    status: 'failed',
    last_error: expect.stringMatching(
      /cannot be reached: .*NODE_EXTRA_CA_CERTS.*DEPTH_ZERO_SELF_SIGNED_CERT/,
    ),
  });
});
