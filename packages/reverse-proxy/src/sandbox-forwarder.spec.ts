import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, createServer, type Server as RawServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import express, { type NextFunction, type Request, type Response } from 'express';
import { WebSocket, WebSocketServer } from 'ws';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { isSessionCookie } from '../../../src/auth/sessions/session-cookie.js';
import { SandboxConnections } from '../../../src/v1/sandbox-proxy/agent-server.targets.js';
import { type ProxiedRequest, SandboxForwarder } from './sandbox-forwarder.js';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe.each([
  ['with a connection for each request', false],
  ['with shared connections', true],
])('SandboxForwarder, %s', (_connections, isShared) => {
  let forwarder: SandboxForwarder;
  let service: Server;
  let program: RawServer;
  /** What the program received, per connection. */
  let received: string[];
  let programs: Socket[];
  let proxied: ProxiedRequest;
  let connections: SandboxConnections | undefined;

  beforeEach(async () => {
    received = [];
    programs = [];
    forwarder = new SandboxForwarder({
      hold: () => undefined,
      isOwnCookie: isSessionCookie,
      tooMany: (most) => new Error(`${most} requests to this program of the sandbox are under way.`),
      unreachable: (cause) => new Error('No answer.', { cause }),
    });
    const app = express();
    app.use(async (request: Request, response: Response) => {
      await forwarder.forwardRequest(request, response, { ...proxied, path: request.url });
    });
    app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
      response.status(502).json({ detail: error.message });
    });
    service = createHttpServer(app);
    service.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on('error', () => socket.destroy());
      void forwarder.forwardUpgrade(request, socket, head, { ...proxied, path: request.url ?? '/' });
    });
    await startListening(service);
  });

  afterEach(async () => {
    const closed = forwarder.closeSockets();
    connections?.closeIdle();
    service.closeAllConnections();
    service.close();
    programs.forEach((socket) => socket.destroy());
    program.close();
    await closed;
  });

  /** Starts a program that sends whatever the test wants. */
  async function startProgram(onData: (socket: Socket, received: string) => void): Promise<void> {
    program = createServer((socket) => {
      const index = received.push('') - 1;
      programs.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        received[index] += chunk.toString('latin1');
        onData(socket, received[index] ?? '');
      });
    });
    await listen(program);
  }

  async function listen(server: RawServer): Promise<void> {
    program = server;
    const nothing = (): void => undefined;
    const target = `http://127.0.0.1:${await startListening(server)}`;
    connections = isShared ? new SandboxConnections({ address: target }) : undefined;
    proxied = {
      target,
      ...(connections && { connections }),
      path: '/',
      ownerId: 'owner',
      isProven: true,
      rewriteRequestHeaders: nothing,
      rewriteResponseHeaders: nothing,
    };
  }

  /** Sends bytes and returns everything that comes back. */
  async function raw(bytes: string): Promise<string> {
    const socket = connect(portOf(service), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.write(bytes, 'latin1');
    await once(socket, 'close');
    return text;
  }

  const get = (method = 'GET', version = '1.1'): string =>
    `${method} / HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`;

  /** So many requests that the program does not answer. */
  async function holdRequests(length: number): Promise<Socket[]> {
    const waiting = Array.from({ length }, () => {
      const socket = connect(portOf(service), '127.0.0.1');
      socket.on('error', () => socket.destroy());
      socket.write(get());
      return socket;
    });
    await until(() => received.length === length);
    return waiting;
  }

  it.each([
    ['a status below the range', 'HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n'],
    ['an interim status as the final one', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'],
    ['a status above the range', 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n'],
    ['another protocol', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
    ['nothing', ''],
    ['no HTTP', 'SSH-2.0-x\r\n'],
    ['half of the headers', 'HTTP/1.1 200 OK\r\nContent-'],
  ])('responds with 502 when a program sends %s', async (_, answer) => {
    await startProgram((socket) => socket.end(answer, 'latin1'));
    const text = await raw(get());
    expect(text).toMatch(/^HTTP\/1\.1 502 /);
    expect(text).toContain('No answer.');
  });

  it.each([
    ['control characters in the reason', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok', 'GET', '1.1'],
    ['trailers to HEAD', 'HTTP/1.1 200 OK\r\nTrailer: X\r\nContent-Length: 2\r\n\r\n', 'HEAD', '1.1'],
    [
      'trailers to an old client',
      'HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n',
      'GET',
      '1.0',
    ],
    ['no length', 'HTTP/1.0 200 OK\r\n\r\nok', 'GET', '1.1'],
  ])('forwards a response with %s', async (_, answer, method, version) => {
    await startProgram((socket) => socket.end(answer, 'latin1'));
    const text = await raw(get(method, version));
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text.includes('ok')).toBe(method === 'GET');
    expect(text).not.toContain('Trailer');
  });

  it('keeps the bytes of headers', async () => {
    const headers = 'Content-Disposition: attachment; filename="\xc3\xa9"\r\nLocation: /caf\xe9\r\n';
    await startProgram((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\n${headers}Content-Length: 2\r\n\r\nok`, 'latin1'),
    );
    const text = await raw(get());
    expect(text).toContain('filename="\xc3\xa9"\r\n');
    expect(text).toContain('/caf\xe9\r\n');
  });

  it('does not forward interim responses', async () => {
    await startProgram((socket) => socket.end(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`));
    const text = await raw(get());
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).not.toContain('103');
  });

  it('reads from a program no faster than the client reads', async () => {
    const size = 24_000_000;
    const all = Buffer.alloc(size, 'x');
    await startProgram((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      socket.write(all);
    });
    const client = connect(portOf(service), '127.0.0.1');
    let length = 0;
    client.write(get());
    await once(client, 'readable');
    // The sockets in between buffer far less than half of it.
    await until(() => (programs[0]?.bytesWritten ?? 0) > 0);
    expect(programs[0]?.writableLength).toBeGreaterThan(size / 2);
    client.on('data', (chunk: Buffer) => (length += chunk.length));
    await once(client, 'close');
    expect(length).toBeGreaterThan(size);
  });

  it.each([
    ['repeats a request once when a kept connection breaks as it is sent', 'GET', true],
    ['does not repeat a request that may have changed something', 'POST', false],
  ])('%s', async (_, method, repeats) => {
    await startProgram((socket, text) => {
      if (text.split(method).length === 3) {
        socket.destroy();
      } else {
        socket.write(OK);
      }
    });
    const isAnswered = repeats || !isShared;
    expect(await raw(get(method))).toMatch(/^HTTP\/1\.1 200 /);
    expect(await raw(get(method))).toMatch(isAnswered ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 502 /);
    expect(received).toHaveLength(isAnswered ? 2 : 1);
  });

  it('breaks off a response that the program breaks off', async () => {
    await startProgram((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'));
    const answer = await fetch(`http://127.0.0.1:${portOf(service)}/`);
    await expect(answer.text()).rejects.toThrow('terminated');
  });

  it('breaks off a response whose body is malformed, also where it comes with the headers', async () => {
    await startProgram((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n'),
    );
    expect(await raw(get())).not.toContain('\r\n0\r\n');
    await until(() => programs[0]?.closed === true);
  });

  it('forwards the headers of a response before its body', async () => {
    await startProgram((socket) => {
      socket.write(
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
      );
    });
    const giveUp = new AbortController();
    const answer = await fetch(`http://127.0.0.1:${portOf(service)}/`, { signal: giveUp.signal });
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    giveUp.abort();
    await once(programs[0] ?? program, 'close');
  });

  it('forwards a body with every method, as one request', async () => {
    await startProgram((socket, text) => {
      if (text.endsWith('0\r\n\r\n')) {
        socket.end(OK);
      }
    });
    const body = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
    const text = await raw(
      `DELETE /x HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    );
    expect(text).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(received).toHaveLength(1);
    expect(received[0]).toContain(`transfer-encoding: chunked\r\n`);
    expect(received[0]).toContain(`\r\n${body}\r\n`);
    expect(received[0]).not.toMatch(/^upgrade:/im);
  });

  it('drains the rest of a body that the program did not read', async () => {
    await startProgram((socket) => {
      // Discards the rest.
      socket.removeAllListeners('data').resume();
      socket.write('HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n');
    });
    const rest = 'x'.repeat(3_000_000);
    const text = await raw(
      `POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${rest.length}\r\n\r\n${rest}${get('GET')}`,
    );
    expect(text.match(/HTTP\/1\.1 .*/g)).toEqual([
      'HTTP/1.1 413 Payload Too Large',
      'HTTP/1.1 413 Payload Too Large',
    ]);
  });

  it('ends the outgoing request when the client leaves', async () => {
    await startProgram(() => undefined);
    const socket = connect(portOf(service), '127.0.0.1');
    socket.write(get());
    await until(() => received.length === 1 && received[0] !== '');
    socket.destroy();
    await until(() => programs[0]?.closed === true);
    expect(received).toHaveLength(1);
  });

  it('limits the requests under way to one program', async () => {
    await startProgram(() => undefined);
    const waiting = await holdRequests(256);
    expect(await raw(get())).toContain('256 requests to this program of the sandbox are under way');
    expect(
      await raw('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
    ).toMatch(/^HTTP\/1\.1 429 /);
    waiting.forEach((socket) => socket.destroy());
    await until(() => programs.every(({ closed }) => closed));
    void raw(get());
    await until(() => received.length === 257);
  });

  it('reuses the connections of many concurrent requests for the next ones', async () => {
    const open: Socket[] = [];
    const atOnce = 100;
    await startProgram((socket) => {
      open.push(socket);
      if (open.length === atOnce) {
        open.splice(0).forEach((each) => each.write(OK));
      }
    });
    for (let wave = 0; wave < 3; wave += 1) {
      const answers = await Promise.all(Array.from({ length: atOnce }, () => raw(get())));
      expect(answers.every((text) => text.startsWith('HTTP/1.1 200 '))).toBe(true);
    }

    expect(programs.length).toBe(isShared ? atOnce : 3 * atOnce);
  });

  it('has room for the owner, however many requests come without a key', async () => {
    await startProgram(() => undefined);
    proxied = { ...proxied, isProven: false };
    const waiting = await holdRequests(64);
    expect(await raw(get())).toContain('requests to this program of the sandbox are under way');
    proxied = { ...proxied, isProven: true };
    void raw(get());
    await until(() => received.length === 65);
    waiting.forEach((socket) => socket.destroy());
  });

  it('adds the client to the headers of earlier proxies', async () => {
    await startProgram((socket) => socket.end(OK));
    await raw(
      'GET /a/../%2F\\[?x HTTP/1.1\r\nHost: public.example\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n',
    );
    const [request = ''] = received;
    expect(request).toMatch(/^GET \/a\/\.\.\/%2F\\\[\?x HTTP\/1\.1\r\n/);
    expect(request).toContain('x-forwarded-for: 1.2.3.4, 127.0.0.1\r\n');
    expect(request).toContain('x-forwarded-proto: https\r\n');
    expect(request).toContain('x-forwarded-host: public.example\r\n');
    expect(request).toContain(`host: ${new URL(proxied.target).host}\r\n`);
  });

  describe('WebSockets', () => {
    const handshake =
      'GET /s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
    const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';

    it('forwards both ways, and reports data of the client', async () => {
      const http = createHttpServer();
      new WebSocketServer({ server: http }).on('connection', (socket) => {
        socket.send('welcome');
        socket.on('message', (data: Buffer) => socket.send(`heard ${data.toString('utf8')}`));
      });
      await listen(http);
      let uses = 0;
      proxied.onClientData = () => {
        uses += 1;
      };
      const socket = new WebSocket(`ws://127.0.0.1:${portOf(service)}/s`);
      expect(String((await once(socket, 'message'))[0])).toBe('welcome');
      expect(uses).toBe(0);
      socket.send('this');
      expect(String((await once(socket, 'message'))[0])).toBe('heard this');
      expect(uses).toBeGreaterThan(0);
      socket.terminate();
      http.closeAllConnections();
    });

    it('rewrites the headers of the handshake like those of responses', async () => {
      await startProgram((socket) => socket.end(`${SWITCHING}Set-Cookie: a=1\r\nX-Other: 1\r\n\r\n`));
      proxied.rewriteResponseHeaders = (headers) => delete headers['set-cookie'];
      const text = await raw(handshake);
      expect(text).toMatch(/^HTTP\/1\.1 101 /);
      expect(text).toContain('x-other: 1');
      expect(text.toLowerCase()).not.toContain('set-cookie');
    });

    it('loses nothing that either side sends with the handshake', async () => {
      await startProgram((socket, text) => {
        if (text.endsWith('early')) {
          socket.end('last');
        } else {
          socket.write(`${SWITCHING}\r\nfirst`);
        }
      });
      expect(await raw(`${handshake}early`)).toMatch(/\r\n\r\nfirstlast$/);
    });

    it('sends nothing more to a client when the connection to the program breaks', async () => {
      await startProgram((socket) => {
        socket.write(`${SWITCHING}\r\nfirst`, () => socket.resetAndDestroy());
      });
      expect(await raw(handshake)).toMatch(/^HTTP\/1\.1 101 [^]*\r\n\r\n(first)?$/);
    });

    it.each([
      ['its status', 'HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n', '403 Forbidden'],
      ['502 for an invalid status', 'HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n', '502 Bad Gateway'],
      ['502 for nothing', '', '502 Bad Gateway'],
    ])('responds with %s when the program refuses', async (_, answer, line) => {
      await startProgram((socket) => socket.end(answer));
      expect(await raw(handshake)).toMatch(new RegExp(`^HTTP/1.1 ${line}\r\n`));
    });

    it.each([
      ['another protocol', handshake.replace('websocket', 'h2c')],
      ['another method', handshake.replace('GET', 'POST')],
    ])('refuses %s', async (_, request) => {
      await startProgram((socket) => socket.end(OK));
      expect(await raw(request)).toMatch(/^HTTP\/1\.1 400 /);
      expect(received).toEqual([]);
    });

    it('closes a refused socket, whatever the client still sends', async () => {
      await startProgram((socket) => socket.end('HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n'));
      const closed = Promise.withResolvers<void>();
      service.once('connection', (socket) => socket.once('close', () => closed.resolve()));
      const client = connect({ port: portOf(service), host: '127.0.0.1', allowHalfOpen: true });
      client.write(handshake);
      const [answer] = await once(client, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1\.1 403 /);
      client.end('more');
      await closed.promise;
      client.destroy();
    });

    it('refuses new ones when the service stops', async () => {
      await startProgram((socket) => socket.write(`${SWITCHING}\r\n`));
      const underWay = connect(portOf(service), '127.0.0.1');
      underWay.write(handshake);
      await once(underWay, 'data');
      const closed = forwarder.closeSockets();
      await once(underWay, 'close');
      await closed;
      expect(await raw(handshake)).toMatch(/^HTTP\/1\.1 503 /);
      await until(() => programs.every(({ closed }) => closed));
    });

    it('ends them between two frames when the service stops, with a code that makes clients connect again', async () => {
      await startProgram((socket) => socket.write(`${SWITCHING}\r\n\x82\x05ab`, 'latin1'));
      const underWay = connect(portOf(service), '127.0.0.1');
      let text = '';
      underWay.on('data', (chunk) => (text += chunk.toString('latin1')));
      underWay.write(handshake);
      await until(() => text.endsWith('ab'));
      const closed = forwarder.closeSockets();
      programs[0]?.write('cde\x82\x01x', 'latin1');
      await closed;

      expect(text.split('\r\n\r\n').at(-1)).toBe('\x82\x05abcde\x88\x02\x03\xf4');
    });

    it('sends nothing for a client that has left', async () => {
      await startProgram((socket) => socket.end(OK));
      const client = connect(portOf(service), '127.0.0.1');
      await once(client, 'connect');
      client.destroy();
      const request = { method: 'GET', headers: { upgrade: 'websocket' }, socket: client };
      await forwarder.forwardUpgrade(request as IncomingMessage, client, Buffer.alloc(0), proxied);
      expect(received).toEqual([]);
    });

    it('keeps nothing open for a client that leaves during the handshake', async () => {
      await startProgram(() => undefined);
      const socket = connect(portOf(service), '127.0.0.1');
      socket.write(handshake);
      await until(() => received.length === 1 && received[0] !== '');
      socket.destroy();
      await once(socket, 'close');
      programs[0]?.write(`${SWITCHING}\r\nfirst`);
      await until(() => programs[0]?.closed === true);
      expect(received).toHaveLength(1);
    });
  });
});

function portOf(server: RawServer): number {
  return (server.address() as AddressInfo).port;
}
