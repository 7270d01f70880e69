import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import express from 'express';
import { jsonBodyMiddleware } from './json-body.middleware.js';

const DEADLINE_MS = 100;

describe('jsonBodyMiddleware', () => {
  const server = createServer(
    express()
      .use(jsonBodyMiddleware(1_000, DEADLINE_MS))
      .post('/', (request, response) => {
        response.json(request.body);
      }),
  );

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it('cuts a client that stops in the middle of its body', async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.resume();
    socket.write(
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"a"',
    );
    await once(socket, 'close');
    expect(socket.destroyed).toBe(true);
  });
});
