import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Gate } from '../../../test/support/gate.js';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { endConnectionsOnClose, ifNoneMatch } from './response-headers.js';

const REQUEST = 'GET / HTTP/1.1\r\nHost: here\r\n\r\n';

describe('a server that is closing', () => {
  let gate: Gate;
  let server: Server;
  let client: Socket;
  let received: string;
  let asked: number;

  beforeEach(async () => {
    gate = new Gate();
    asked = 0;
    received = '';
    server = createServer(async (_request, response) => {
      asked += 1;
      await gate.pass();
      response.end('ok');
    });
    // Node alone would keep the connection for ever.
    server.keepAliveTimeout = 0;
    endConnectionsOnClose(server);
    client = connect(await startListening(server));
    client.on('data', (data) => {
      received += data.toString();
    });
    await once(client, 'connect');
    gate.close();
    client.write(REQUEST);
    await until(() => asked === 1);
  });

  afterEach(() => {
    client.destroy();
    server.close();
    server.closeAllConnections();
  });

  it('responds on a keep-alive connection, and ends it', async () => {
    const closed = once(server.close(), 'close');
    client.write(REQUEST);
    await until(() => asked === 2);
    gate.open();
    await closed;

    await until(() => client.readableEnded || client.destroyed);
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(received).toMatch(/Connection: close/i);
  });

  it('leaves connections alone before', async () => {
    gate.open();
    await until(() => received.includes('ok'));
    client.write(REQUEST);
    await until(() => asked === 2);

    expect(received).not.toMatch(/Connection: close/i);
  });
});

describe('ifNoneMatch', () => {
  it.each([
    [undefined, false],
    ['', false],
    ['"abc"', true],
    ['W/"abc"', true],
    ['"x", "abc" , "y"', true],
    ['*', true],
    ['"abcd"', false],
    ['abc', false],
    ['"x"', false],
  ])('%j: %s', (header, expected) => {
    expect(ifNoneMatch(header, '"abc"')).toBe(expected);
  });
});
