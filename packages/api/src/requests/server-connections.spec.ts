import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Gate } from '../../../../test/support/gate.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { until } from '../../../../test/support/until.js';
import { ServerConnections } from './server-connections.js';

const REQUEST = 'GET / HTTP/1.1\r\nHost: here\r\n\r\n';
/** More than sockets buffer. */
const LARGE = 20_000_000;

let gate: Gate;
let server: Server;
let connections: ServerConnections;
let client: Socket;
let received: string;
let asked: number;

async function start(respond: RequestListener, stalledMs?: number): Promise<void> {
  server = createServer(() => {
    asked += 1;
  });
  // Node alone would keep connections for ever.
  server.keepAliveTimeout = 0;
  connections = ServerConnections.attach(server, stalledMs);
  server.on('request', connections.inTurn(respond));
  client = connect(await startListening(server));
  client.on('data', (data) => {
    received += data.toString();
  });
  await once(client, 'connect');
  client.write(REQUEST);
  await until(() => asked === 1);
}

beforeEach(() => {
  gate = new Gate();
  gate.close();
  asked = 0;
  received = '';
});

afterEach(() => {
  client.destroy();
  server.close();
  server.closeAllConnections();
});

describe('a server that responds later', () => {
  beforeEach(async () => {
    await start(async (_request, response) => {
      await gate.pass();
      response.end('ok');
    });
  });

  it('ends a keep-alive connection with its last response once it closes', async () => {
    const closed = once(server.close(), 'close');
    client.write(REQUEST);
    await until(() => asked === 2);
    gate.open();
    await closed;

    await until(() => client.readableEnded || client.destroyed);
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(received).toMatch(/Connection: close/i);
  });

  it('closes when a body has arrived whose request was answered before', async () => {
    server.keepAliveTimeout = 620_000;
    gate.open();
    await until(() => received.endsWith('ok'));
    client.write('POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n1');
    await until(() => received.match(/ok/g)?.length === 2);
    const closed = once(server.close(), 'close');
    client.write('2');

    await closed;
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  });

  it('says with each response that the connection ends while it drains, and still takes others', async () => {
    connections.drain();
    gate.open();
    await until(() => client.readableEnded);
    expect(received).toMatch(/Connection: close[\s\S]*ok$/i);

    const address = server.address();
    received = '';
    client = connect(typeof address === 'object' && address !== null ? address.port : 0);
    client.on('data', (data) => (received += data.toString()));
    client.write(REQUEST);
    await until(() => client.readableEnded);
    expect(received).toMatch(/Connection: close[\s\S]*ok$/i);
  });

  it('does not wait for connections that nobody uses', async () => {
    const address = server.address();
    const unused = connect(typeof address === 'object' && address !== null ? address.port : 0);
    await once(server, 'connection');
    gate.open();
    await once(server.close(), 'close');

    await until(() => unused.readableEnded || unused.destroyed);
    expect(received).toMatch(/ok$/);
  });

  it('leaves connections alone before', async () => {
    gate.open();
    await until(() => received.includes('ok'));
    client.write(REQUEST);
    await until(() => asked === 2);

    expect(received).not.toMatch(/Connection: close/i);
  });
});

it('lets a client read a response to its end that was complete when the server closed', async () => {
  await start((_request, response) => {
    client.pause();
    response.end('x'.repeat(LARGE));
  });
  const closed = once(server.close(), 'close');
  client.resume();
  await closed;

  await until(() => client.readableEnded || client.destroyed);
  expect(received.length).toBeGreaterThan(LARGE);
});

it('closes although a response that had begun had promised to keep its connection', async () => {
  await start(async (_request, response) => {
    response.write('begun, ');
    await gate.pass();
    response.end('ended');
  });
  await until(() => received.includes('begun'));
  const closed = once(server.close(), 'close');
  gate.open();
  await closed;

  await until(() => client.readableEnded);
  expect(received).toMatch(/keep-alive[\s\S]*ended/);
});

describe('requests that are sent ahead', () => {
  const begun: string[] = [];

  beforeEach(async () => {
    begun.length = 0;
    await start(async ({ url = '' }, response) => {
      begun.push(url);
      await gate.pass();
      response.end(`${url};`);
    });
  });

  const ahead = (count: number): string =>
    Array.from({ length: count }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: here\r\n\r\n`).join('');

  it('are answered in their order, each once the one before has its response', async () => {
    client.write(ahead(50));
    await until(() => asked > 9);
    expect(begun).toEqual(['/']);

    gate.open();
    await until(() => received.includes('/49;'));
    expect(begun).toEqual(['/', ...Array.from({ length: 50 }, (_, index) => `/${index}`)]);
  });

  it('are not read while some wait', async () => {
    // Each as large as a read, so that every read brings one.
    const large = `GET /large HTTP/1.1\r\nHost: here\r\nX-Large: ${'x'.repeat(15_000)}\r\n\r\n`;
    const sent = new Promise<void>((resolve) => {
      client.write(large.repeat(1_000), () => resolve());
    });
    await until(() => asked >= 9);
    expect(asked).toBeLessThan(20);

    gate.open();
    await sent;
    await until(() => asked === 1_001);
  });

  it('end the connection when they are more than any client sends', async () => {
    client.write(ahead(500));
    await until(() => client.destroyed || client.readableEnded);
    expect(begun).toEqual(['/']);
  });

  it('are dropped behind a response that ends the connection', async () => {
    connections.drain();
    client.write(ahead(3));
    await until(() => asked === 4);
    gate.open();
    await until(() => client.readableEnded);
    expect([begun, received.match(/HTTP\/1\.1 200/g)?.length]).toEqual([['/'], 1]);
  });
});

it('closes a connection whose client does not read, and none whose response takes long', async () => {
  const sockets: Socket[] = [];
  await start(async ({ url, socket }, response) => {
    sockets.push(socket);
    if (url === '/large') {
      response.end('x'.repeat(LARGE));
    } else {
      await gate.pass();
      response.end('late');
    }
  }, 100);
  const stalled = connect(Number(Object(server.address()).port));
  stalled.pause().write(REQUEST.replace('/', '/large'));
  await until(() => sockets[1]?.destroyed === true);
  stalled.destroy();

  gate.open();
  await until(() => received.endsWith('late'));
  expect(sockets[0]?.destroyed).toBe(false);
});
