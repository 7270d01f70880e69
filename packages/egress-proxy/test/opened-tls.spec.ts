import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Server as HttpsServer } from 'node:https';
import { type WebSocket as ServerSocket, WebSocket, WebSocketServer } from 'ws';
import { until } from '../../../test/support/until.js';
import type { EgressPolicy, EgressRules } from '../src/protocol.js';
import { clientHello } from './support/client-hello.js';
import { type Answer, ProxyWorld, requestHead } from './support/proxy-world.js';
import { denying, injection, PLACEHOLDER, VALUE } from './support/sample-policy.js';
import { newAuthority } from '../src/new-authority.js';

let world: ProxyWorld;
let port: number;
let server: HttpsServer;
let url: string;

beforeEach(async () => {
  world = await ProxyWorld.start();
  ({ port, server } = await world.startTlsHost());
  url = `https://api.example:${port}`;
});

afterEach(async () => {
  await world.stop();
});

function withCredential(changes: Partial<EgressPolicy> = {}): void {
  world.allow({
    injections: [injection({ hosts: [{ host: 'api.example', port }], query: ['key'] })],
    ...changes,
  });
}

const bearer = { Authorization: `Bearer ${PLACEHOLDER}` };
const reason = ({ status, headers }: Answer) => headers['x-slipway-egress'] ?? status;

describe('a credential', () => {
  it('is put in towards its host, in its header and its member of the query alone', async () => {
    withCredential();
    const answer = await world.https(`${url}/${PLACEHOLDER}?key=${PLACEHOLDER}&other=${PLACEHOLDER}`, {
      method: 'POST',
      headers: { ...bearer, 'X-Other': PLACEHOLDER, Cookie: `a=${PLACEHOLDER}` },
      body: `body with ${PLACEHOLDER}`,
    });
    expect(answer).toMatchObject({ status: 200, body: 'hello\n' });
    expect(world.received).toEqual([
      expect.objectContaining({
        url: `/${PLACEHOLDER}?key=${VALUE}&other=${PLACEHOLDER}`,
        headers: expect.objectContaining({
          authorization: `Bearer ${VALUE}`,
          'x-other': PLACEHOLDER,
          cookie: `a=${PLACEHOLDER}`,
        }),
        body: `body with ${PLACEHOLDER}`,
      }),
    ]);
  });

  it('stays a placeholder towards other hosts, other ports, and in other sandboxes', async () => {
    withCredential();
    const other = await world.startTlsHost();
    await world.https(`https://evil.example:${port}/`, { headers: bearer });
    await world.https(`https://api.example:${other.port}/`, { headers: bearer });
    world.allow({
      sandbox: 'sandbox-1',
      injections: [
        injection({
          placeholder: 'ghp_ofTheOtherTenant00000000000000000000',
          hosts: [{ host: 'api.example', port }],
        }),
      ],
    });
    await world.https(`${url}/`, { headers: bearer });
    expect(world.received.map(({ headers }) => headers.authorization)).toEqual(
      Array(3).fill(bearer.Authorization),
    );
  });

  it('stays behind when the host redirects to another', async () => {
    withCredential();
    world.answer = (incoming, response) =>
      incoming.url === '/'
        ? response.writeHead(307, { Location: `https://storage.example:${port}/file` }).end()
        : response.end('file');
    const { headers, status } = await world.https(`${url}/`, { headers: bearer });
    expect(status).toBe(307);
    await world.https(headers.location ?? '', { headers: bearer });
    expect(world.received.map((each) => [each.headers.host, each.headers.authorization])).toEqual([
      [`api.example:${port}`, `Bearer ${VALUE}`],
      [`storage.example:${port}`, bearer.Authorization],
    ]);
  });

  it('that a program brings itself is left as it is', async () => {
    withCredential();
    await world.https(`${url}/`, { headers: { Authorization: 'Bearer own' } });
    expect(world.received[0]?.headers.authorization).toBe('Bearer own');
  });

  it('changes and ends while a connection is open', async () => {
    withCredential();
    const secure = await world.tls(`api.example:${port}`);
    await world.over(secure, `${url}/`, { headers: bearer });
    world.allow({
      injections: [injection({ value: 'another-value-0123456789', hosts: [{ host: 'api.example', port }] })],
    });
    await world.over(secure, `${url}/`, { headers: bearer });
    world.allow({ layers: [denying([])] });
    const denied = await world.over(secure, `${url}/`, { headers: bearer });
    expect(world.received.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${VALUE}`,
      'Bearer another-value-0123456789',
    ]);
    expect(reason(denied)).toBe('denied; reason=rule');
  });

  it('is masked where the host repeats it, whatever the pieces', async () => {
    withCredential();
    world.answer = (incoming, response) => {
      const whole = `data: ${incoming.headers.authorization}\n\n`;
      response.writeHead(200, { 'Content-Type': 'text/event-stream', Location: `/?key=${VALUE}` });
      const [start, end] = [whole.slice(0, 20), whole.slice(20)];
      response.write(start, () => response.end(end));
    };
    const answer = await world.https(`${url}/`, { headers: bearer });
    expect(answer).toMatchObject({
      body: `data: ${bearer.Authorization}\n\n`,
      headers: { location: `/?key=${PLACEHOLDER}` },
    });
  });

  it('is masked in the header of Basic that a host repeats', async () => {
    withCredential();
    world.answer = (incoming, response) => response.end(incoming.headers.authorization);
    const authorization = `Basic ${Buffer.from(`x-access-token:${PLACEHOLDER}`).toString('base64')}`;
    const answer = await world.https(`${url}/`, { headers: { Authorization: authorization } });
    expect(answer.body).toBe(authorization);
    const sent = world.received[0]?.headers.authorization?.slice('Basic '.length) ?? '';
    expect(Buffer.from(sent, 'base64').toString()).toBe(`x-access-token:${VALUE}`);
  });

  it('is masked where a part of an answer is asked for', async () => {
    withCredential();
    world.answer = (incoming, response) => {
      const whole = String(incoming.headers.authorization);
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(incoming.headers.range ?? '') ?? [];
      const part = from === undefined ? whole : whole.slice(Number(from), Number(to) + 1);
      response.writeHead(from === undefined ? 200 : 206).end(part);
    };
    const parts: string[] = [];
    for (const range of ['bytes=0-19', 'bytes=20-99']) {
      const headers = { ...bearer, Range: range, 'If-Range': '"a"' };
      parts.push((await world.https(`${url}/`, { headers })).body);
    }
    expect(parts).toEqual([bearer.Authorization, bearer.Authorization]);
  });

  it('begins no session, which would be good for every path of the host', async () => {
    withCredential();
    world.answer = (_incoming, response) =>
      response.writeHead(200, { 'Set-Cookie': 'session=of-the-user' }).end();
    const cookies = async (path: string, headers: Record<string, string>) =>
      (await world.https(`${url}${path}`, { headers })).headers['set-cookie'];
    const basic = `Basic ${Buffer.from(`x:${PLACEHOLDER}`).toString('base64')}`;
    expect(await cookies('/', bearer)).toBeUndefined();
    expect(await cookies('/', { Authorization: basic })).toBeUndefined();
    expect(await cookies(`/?key=${PLACEHOLDER}`, {})).toBeUndefined();
    expect(await cookies('/', {})).toEqual(['session=of-the-user']);
  });

  it('never stands in a report', async () => {
    withCredential();
    await world.https(`${url}/path?key=${PLACEHOLDER}`, { headers: bearer });
    expect(JSON.stringify(await world.reported())).not.toMatch(`${VALUE}|${PLACEHOLDER}`);
    expect(world.service.reported).toEqual([
      expect.objectContaining({ method: 'GET', path: '/path', status: 200 }),
    ]);
  });
});

describe('a request in opened TLS', () => {
  it.each<[string, Partial<EgressRules['allow'][number]>, string, string, string | number]>([
    ['a method', { methods: ['GET'] }, 'POST', '/', 'denied; reason=method'],
    ['a path that climbs', { paths: ['/own/*'] }, 'GET', '/own/..%2fother', 'denied; reason=path'],
    ['nothing', { methods: ['GET'] }, 'GET', '/', 200],
  ])('is held to %s', async (_what, rule, method, path, result) => {
    world.allow({ layers: [denying([{ host: 'api.example', port, ...rule }])] });
    const answer = await world.https(`${url}${path}`, { method });
    expect(reason(answer)).toBe(result);
    expect(await world.reported()).toEqual([expect.objectContaining({ method, path })]);
  });

  it('goes where its tunnel goes, whatever it says', async () => {
    withCredential();
    const ask = async (headers: Record<string, string>, path = '/') => {
      const secure = await world.tls(`api.example:${port}`);
      return reason(await world.over(secure, `${url}${path}`, { headers }));
    };
    expect(await ask({ Host: 'evil.example' })).toBe('denied; reason=protocol');
    expect(await ask({ Host: 'api.example' })).toBe('denied; reason=protocol');
    const secure = await world.tls(`api.example:${port}`);
    const absolute = { path: 'http://evil.example/', headers: { Host: `api.example:${port}` } };
    expect(reason(await world.over(secure, `${url}/`, absolute))).toBe('denied; reason=protocol');
    expect(world.received).toEqual([]);
    expect((await world.reported()).map(({ denied }) => denied)).toEqual([
      'protocol',
      'protocol',
      'protocol',
    ]);
  });

  it('is one request where it is allowed once', async () => {
    world.allowOnce(`api.example:${port}`, [
      { ...denying([{ host: 'api.example', port, methods: ['GET'] }]), yieldsOnce: true },
    ]);
    const secure = await world.tls(`api.example:${port}`);
    const ask = async (method: string) => reason(await world.over(secure, `${url}/`, { method }));
    expect([await ask('GET'), await ask('POST'), await ask('POST')]).toEqual([
      200,
      200,
      'denied; reason=method',
    ]);
  });

  it('is no more than the operator lets pass where it is a connection that is allowed once', async () => {
    world.allowOnce(`api.example:${port}`, [
      { ...denying([]), yieldsOnce: true },
      denying([{ host: 'api.example', port, paths: ['/open/*'] }]),
    ]);
    const secure = await world.tls(`api.example:${port}`);
    const ask = async (path: string) => reason(await world.over(secure, `${url}${path}`));
    expect([await ask('/open/a'), await ask('/other'), await ask('/open/b')]).toEqual([
      200,
      'denied; reason=path',
      200,
    ]);
  });

  it('carries no credential of a stranger past the operator where it is allowed once', async () => {
    world.allowOnce(`api.example:${port}`, [
      { ...denying([]), yieldsOnce: true },
      denying([{ host: 'api.example', port, isOwn: true }]),
    ]);
    const secure = await world.tls(`api.example:${port}`);
    const ask = async (headers = {}) => reason(await world.over(secure, `${url}/`, { headers }));
    expect([await ask(), await ask({ Authorization: 'Bearer foreign' })]).toEqual([
      200,
      'denied; reason=credential',
    ]);
  });

  it('opens no tunnel in a tunnel', async () => {
    withCredential();
    const secure = await world.tls(`api.example:${port}`);
    secure.write(`CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n`);
    expect(await text(secure)).toMatch(/^HTTP\/1\.1 403 [^]*reason=protocol/);
  });

  it('is no health of the proxy', async () => {
    withCredential();
    await world.https(`${url}/health`);
    expect(world.received).toEqual([expect.objectContaining({ url: '/health' })]);
  });

  it('reuses the connection to its host', async () => {
    withCredential();
    let connections = 0;
    server.on('secureConnection', () => (connections += 1));
    const secure = await world.tls(`api.example:${port}`);
    for (let index = 0; index < 3; index += 1) {
      await world.over(secure, `${url}/`, { method: 'POST', body: 'x' });
    }
    expect([connections, world.resolved]).toEqual([1, ['api.example']]);
  });

  it('is sent again where the host closed a kept connection, unless it could have been done', async () => {
    withCredential();
    const secure = await world.tls(`api.example:${port}`);
    await world.over(secure, `${url}/`);
    server.closeIdleConnections();
    expect((await world.over(secure, `${url}/`)).status).toBe(200);
  });

  it('meets the trust of the service, not of the sandbox', async () => {
    const stranger = await world.startTlsHost({ authority: await newAuthority('stranger') });
    world.allow({ injections: [injection({ hosts: [{ host: 'api.example', port: stranger.port }] })] });
    const answer = await world.https(`https://api.example:${stranger.port}/`, { headers: bearer });
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining('NODE_EXTRA_CA_CERTS') });
    expect(world.received).toEqual([]);
  });
});

describe('the handshake', () => {
  it('shows a certificate of the sandbox for this host alone', async () => {
    withCredential();
    const secure = await world.tls(`api.example:${port}`);
    const certificate = secure.getPeerX509Certificate();
    expect(certificate).toMatchObject({
      issuer: 'CN=Slipway sandbox one',
      subjectAltName: 'DNS:api.example',
      ca: false,
    });
    expect(secure.alpnProtocol).toBe('http/1.1');
    const { socket } = await world.connect(`api.example:${port}`);
    await expect(
      world.handshake(socket, 'api.example', { ca: [world.hostAuthority.certificate] }),
    ).rejects.toThrow(/certificate/);
  });

  it('tells a client that insists on HTTP/2', async () => {
    withCredential();
    const { socket } = await world.connect(`api.example:${port}`);
    await expect(world.handshake(socket, 'api.example', { ALPNProtocols: ['h2'] })).rejects.toThrow(
      /application.protocol/i,
    );
    expect(await world.reported()).toEqual([
      expect.objectContaining({ denied: 'protocol', method: 'CONNECT' }),
    ]);
  });

  it.each<[string, string[]]>([
    ['another name', ['evil.example']],
    ['no name', []],
  ])('with %s is refused', async (_what, names) => {
    withCredential();
    const { socket } = await world.connect(`api.example:${port}`);
    socket.write(clientHello({ names, alpn: ['http/1.1'] }));
    const [alert] = (await once(socket, 'data')) as [Buffer];
    expect([...alert]).toEqual([21, 3, 3, 0, 2, 2, 49]);
    expect(await world.reported()).toEqual([expect.objectContaining({ denied: 'protocol' })]);
  });
});

describe('a WebSocket', () => {
  let sockets: ServerSocket[];
  beforeEach(() => {
    sockets = [];
    const accepting = new WebSocketServer({ server, perMessageDeflate: true });
    accepting.on('connection', (socket, incoming) => {
      sockets.push(socket);
      socket.send(`you sent ${incoming.headers.authorization}`);
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
    });
  });

  async function open(path = '/'): Promise<{ socket: WebSocket; first: Promise<string> }> {
    const secure = await world.tls(`api.example:${port}`, { ALPNProtocols: ['http/1.1'] });
    const socket = new WebSocket(`wss://api.example:${port}${path}`, {
      createConnection: () => secure,
      headers: bearer,
    });
    const first = once(socket, 'message').then(([data]) => String(data));
    return { socket, first };
  }

  it('is joined to that of its host, with its credential', async () => {
    withCredential();
    const { socket, first } = await open();
    expect(await first).toBe(`you sent ${bearer.Authorization}`);
    for (const message of ['a', 'x'.repeat(300_000), VALUE]) {
      const answered = once(socket, 'message').then(([data]) => String(data));
      socket.send(message);
      expect(await answered).toBe(message === VALUE ? PLACEHOLDER : message);
    }
    expect(world.proxy.held['lasting']).toBe(1);
    const closed = once(socket, 'close');
    socket.close(1000, 'done');
    await closed;
    await until(async () => (await world.reported()).length === 1 && world.proxy.held['lasting'] === 0);
    expect(world.service.reported).toEqual([expect.objectContaining({ method: 'GET', status: 101 })]);
  });

  it('is refused by the rules, and by its host, as a request is', async () => {
    world.allow({ layers: [denying([{ host: 'api.example', port, paths: ['/own'] }])] });
    const refused = await open('/other');
    refused.first.catch(() => undefined);
    const [, answer] = (await once(refused.socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(answer.headers['x-slipway-egress']).toBe('denied; reason=path');
    refused.socket.on('error', () => undefined).terminate();

    server.removeAllListeners('upgrade');
    const unwanted = await open('/own');
    unwanted.first.catch(() => undefined);
    const [, other] = (await once(unwanted.socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(other.statusCode).toBe(200);
    unwanted.socket.on('error', () => undefined).terminate();
  });

  it('ends when its rule does', async () => {
    withCredential();
    const { socket, first } = await open();
    await first;
    world.allow({ layers: [denying([])] });
    const closed = once(socket, 'close');
    await world.proxy.recheck();
    await closed;
    expect(sockets).toHaveLength(1);
  });

  it('brings no body along', async () => {
    withCredential();
    const secure = await world.tls(`api.example:${port}`);
    secure.write(
      `GET / HTTP/1.1\r\nHost: api.example:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nGET /`,
    );
    expect(await text(secure)).toMatch(/^HTTP\/1\.1 403 [^]*reason=protocol/);
  });
});

describe('streams', () => {
  it('go both ways at the speed of the slower side', async () => {
    withCredential();
    const size = 24 * 1024 * 1024;
    let taken = 0;
    let take: () => void = () => undefined;
    world.answer = (incoming, response) => {
      take = () => {
        incoming
          .on('data', ({ length }: Buffer) => (taken += length))
          .on('end', () => response.end(Buffer.alloc(size, 'x')));
      };
    };
    const secure = await world.tls(`api.example:${port}`);
    const headers = { 'X-Stream': '1', 'Content-Length': String(size) };
    const sent = world.begin(secure, url, { method: 'POST', headers });
    const isFlushed = sent.write(Buffer.alloc(size, 'y'));
    expect(isFlushed).toBe(false);
    await until(() => world.received.length === 1);
    // The host takes nothing yet, so the proxy cannot have taken all.
    expect(secure.writableLength + sent.writableLength).toBeGreaterThan(0);
    take();
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    expect([taken, (await text(answer)).length]).toEqual([size, size]);
  });

  it('arrive while they are written', async () => {
    withCredential();
    let go: () => void = () => undefined;
    world.answer = (_incoming, response) => {
      response.write('first\n');
      go = () => response.end('second\n');
    };
    const secure = await world.tls(`api.example:${port}`);
    const sent = world.begin(secure, url).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const [first] = (await once(answer, 'data')) as [Buffer];
    expect(String(first)).toBe('first\n');
    go();
    expect(await text(answer)).toBe('second\n');
  });

  it('end at the host when the sandbox goes, and the other way round', async () => {
    withCredential();
    const ends: string[] = [];
    world.answer = (_incoming, response) => {
      response.on('close', () => ends.push('host'));
      response.write('first\n');
    };
    const secure = await world.tls(`api.example:${port}`);
    const sent = world.begin(secure, url).end();
    await once(sent, 'response');
    secure.destroy();
    await until(() => ends.length === 1);

    world.answer = (_incoming, response) => {
      response.writeHead(200, { 'Content-Length': '100' });
      response.write('first\n', () => response.destroy());
    };
    await expect(world.https(`${url}/`)).rejects.toThrow(/aborted|hang up/);
    await until(() => world.proxy.held['clients'] === 0);
  });
});

it('leaves nothing behind', async () => {
  withCredential({ maxAgeSeconds: 60 });
  const plain = await world.startHost();
  const before = world.proxy.held;
  expect(Object.values(before)).toEqual(Object.values(before).map(() => 0));
  const once = requestHead(`GET http://api.example:${plain}/`);
  for (let round = 0; round < 4; round += 1) {
    // Many on one connection, and those whose program goes away.
    const bytes = `${once}\r\n`.repeat(49) + `${once}Connection: close\r\n\r\n`;
    for (let connection = 0; connection < 10; connection += 1) {
      const answers = await world.raw(bytes);
      expect(answers.match(/^HTTP\/1\.1 200/gm)).toHaveLength(50);
    }
    world.received.length = 0;
    await world.https(`${url}/`, { headers: bearer });
    (await world.connect(`api.example:${port}`)).socket.destroy();
    (await world.connect(`other.example:${port}`)).socket.destroy();
  }
  await until(async () => {
    await world.reported();
    return JSON.stringify(world.proxy.held) === JSON.stringify(before);
  });
});
