import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Gate } from '../../../test/support/gate.js';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { ConnectionDrain } from './connection-drain.js';

const REQUEST = 'GET / HTTP/1.1\r\nHost: here\r\n\r\n';
/** More than sockets buffer. */
const LARGE = 20_000_000;

let gate: Gate;
let server: Server;
let drain: ConnectionDrain;
let client: Socket;
let received: string;
let asked: number;

async function start(respond: RequestListener): Promise<void> {
  server = createServer((request, response) => {
    asked += 1;
    respond(request, response);
  });
  // Node alone would keep connections for ever.
  server.keepAliveTimeout = 0;
  drain = ConnectionDrain.attach(server);
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

  it('closes when the request has ended that was under way', async () => {
    const closed = once(server.close(), 'close');
    gate.open();
    await closed;

    await until(() => client.readableEnded);
    expect(received).toMatch(/ok$/);
  });

  it('says with each response that the connection ends while it drains, and still takes others', async () => {
    drain.begin();
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
