import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { PolicySource } from '../src/policy-source.js';
import { endForbidden } from '../src/tunnel.js';
import { clientHello } from './support/client-hello.js';
import { proxyAuthorization, ProxyWorld, requestHead } from './support/proxy-world.js';
import { CREDENTIAL, denying, injection, PLACEHOLDER, SANDBOX, target } from './support/sample-policy.js';

const ALERT = [21, 3, 3, 0, 2, 2];
const HELLO = clientHello({ names: ['api.example'] });

let world: ProxyWorld;
let port: number;

beforeEach(async () => {
  world = await ProxyWorld.start();
  ({ port } = await world.startTlsHost());
});

afterEach(async () => {
  await world.stop();
});

/** The first bytes of a tunnel, as a host gets them, and what came back. */
async function send(authority: string, bytes: Buffer): Promise<Buffer> {
  const { socket, status } = await world.connect(authority);
  expect(status).toBe(200);
  socket.write(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

it('whose TLS is opened uses no connection that was made without TLS', async () => {
  const plain = await world.startHost();
  const authority = `api.example:${plain}`;
  world.allow({ injections: [injection({ hosts: [{ host: 'api.example', port: plain }] })] });
  const socket = connect(world.port, '127.0.0.1');
  const answered = async (line: string, end: string): Promise<void> => {
    let answer = '';
    socket.write(`${requestHead(line)}\r\n`);
    while (!answer.endsWith(end)) {
      const [chunk]: Buffer[] = await once(socket, 'data');
      answer += String(chunk);
    }
  };
  await answered(`GET http://${authority}/first`, 'hello\n');
  await answered(`CONNECT ${authority}`, '\r\n\r\n');
  const secure = await world.handshake(socket, 'api.example');
  const headers = { Authorization: `Bearer ${PLACEHOLDER}` };
  expect((await world.over(secure, `https://${authority}/second`, { headers })).status).toBe(502);
  expect(world.received.map(({ url }) => url)).toEqual(['/first']);
  secure.destroy();
});

describe('a tunnel that is passed through', () => {
  it('ends at its host, and is reported', async () => {
    const secure = await world.tls(`api.example:${port}`);
    expect(secure.getPeerX509Certificate()?.issuer).toBe('CN=Slipway sandbox hosts');
    expect(secure.alpnProtocol).toBe('http/1.1');
    expect(await world.over(secure, `https://api.example:${port}/path`)).toMatchObject({
      status: 200,
      body: 'hello\n',
    });
    secure.destroy();
    await until(async () => (await world.reported()).length > 0);
    const [reported] = await world.reported();
    expect(reported).toMatchObject({
      sandbox: SANDBOX,
      host: 'api.example',
      port,
      method: 'CONNECT',
      path: null,
      denied: null,
      status: null,
    });
    expect(reported?.receivedBytes).toBeGreaterThan(500);
  });

  it('to a denied host is refused in words', async () => {
    world.allow({ layers: [denying([], [{ host: 'api.example' }])] });
    const answer = await world.connect(`api.example:${port}`);
    expect(answer).toMatchObject({
      status: 403,
      headers: { 'x-slipway-egress': 'denied; reason=rule', 'content-type': 'text/plain; charset=utf-8' },
    });
    expect(answer.body).toMatch(/^Slipway's egress proxy denied .*\n$/);
    expect(await world.reported()).toEqual([
      expect.objectContaining({ method: 'CONNECT', denied: 'rule', rule: 'api.example', path: null }),
    ]);
  });

  it('needs a name and a port', async () => {
    for (const authority of [
      'api.example',
      'api.example:',
      'http://api.example/',
      'user@api.example:443',
      'api.example:99999',
    ]) {
      expect(await world.connect(authority, { headers: { Host: 'x' } })).toMatchObject({
        status: 403,
        headers: { 'x-slipway-egress': 'denied; reason=protocol' },
      });
    }
    const other = await world.connect(`api.example:${port}`, { headers: { Host: 'other.example' } });
    expect(other.headers).toMatchObject({ 'x-slipway-egress': 'denied; reason=protocol' });
  });

  it.each<[string, () => Buffer]>([
    ['a word that is no method', () => Buffer.from('GOT / HTTP/1.1\r\nHost: api.example\r\n\r\n')],
    ['SSH', () => Buffer.from('SSH-2.0-OpenSSH_9.9\r\n')],
    ['HTTP/2 without TLS', () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['TLS that is no hello', () => Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
    ['the name of another server', () => clientHello({ names: ['other.example'] })],
    ['no name', () => clientHello({ names: [] })],
    ['two names', () => clientHello({ names: ['api.example', 'other.example'] })],
    [
      'a name in two extensions',
      () => clientHello({ names: ['api.example'], more: [[0, nameOf('other.example')]] }),
    ],
    ['a name with a port', () => clientHello({ names: ['api.example:443'] })],
    [
      'an inner hello (ECH)',
      () => clientHello({ names: ['api.example'], more: [[0xfe0d, Buffer.from([1])]] }),
    ],
    [
      'a hidden name beside another outside (ECH)',
      () => clientHello({ names: ['front.example'], more: [[0xfe0d, ech()]] }),
    ],
    [
      'an unknown form of ECH',
      () => clientHello({ names: ['api.example'], more: [[0xfe0d, Buffer.from([0, 9, 9])]] }),
    ],
    ['a hello in pieces', () => cutIntoRecords(HELLO)],
  ])('does not begin with %s', async (_what, bytes) => {
    const answer = await send(`api.example:${port}`, bytes());
    expect([...answer]).toEqual([...ALERT, 49]);
    expect(world.received).toEqual([]);
    expect(await world.reported()).toEqual([
      expect.objectContaining({ host: 'api.example', denied: 'protocol', method: 'CONNECT' }),
    ]);
  });

  it.each<[string, string[] | undefined, number]>([
    ['passed through', undefined, 200],
    ['opened', ['GET'], 403],
  ])(
    'carries plain requests, each judged by itself, where TLS would be %s',
    async (_how, methods, posted) => {
      const plain = await world.startHost();
      world.allow({ layers: [denying([{ host: 'api.example', port: plain, ...(methods && { methods }) }])] });
      const authority = `api.example:${plain}`;
      const { socket, status } = await world.connect(authority);
      expect(status).toBe(200);
      const first = await world.over(socket, `http://${authority}/first`);
      expect(first).toMatchObject({ status: 200, body: 'hello\n' });
      expect(await world.over(socket, `http://${authority}/second`, { method: 'POST' })).toMatchObject({
        status: posted,
      });
      socket.destroy();
      const other = await world.connect(authority);
      expect(await world.over(other.socket, `http://other.example:${plain}/third`)).toMatchObject({
        status: 403,
        headers: { 'x-slipway-egress': 'denied; reason=protocol' },
      });
      expect(world.received.map(({ url }) => url)).not.toContain('/third');
      other.socket.destroy();
    },
  );

  it('may have an ECH extension that means nothing', async () => {
    const host = await startSilentHost();
    const { socket } = await world.connect(`api.example:${host.port}`);
    const hello = clientHello({ names: ['api.example'], more: [[0xfe0d, ech()]] });
    socket.write(hello);
    await until(() => host.received().length === hello.length);
    expect(host.received()).toEqual(hello);
    socket.destroy();
  });

  it('may begin before it is confirmed', async () => {
    const host = await startSilentHost();
    const socket = connect(world.port, '127.0.0.1');
    const head = `${requestHead(`CONNECT api.example:${host.port}`)}\r\n`;
    socket.write(Buffer.concat([Buffer.from(head), HELLO]));
    await until(() => host.received().length === HELLO.length);
    expect(host.received()).toEqual(HELLO);
    socket.destroy();
  });

  it('to an address has no name', async () => {
    world.allow({ layers: [denying([{ host: '127.0.0.1', port }])] });
    const { socket } = await world.connect(`127.0.0.1:${port}`);
    const secure = await world
      .handshake(socket, '', { checkServerIdentity: () => undefined, rejectUnauthorized: false })
      .catch(String);
    // The host has no certificate without a name; that its alert arrives shows that the tunnel was open.
    expect(secure).toMatch(/alert|no suitable|closed/i);
    await until(async () => (await world.reported()).length > 0);
    expect(world.service.reported).toEqual([expect.objectContaining({ denied: null })]);
  });

  it('carries nothing but TLS afterwards, either way', async () => {
    const host = await startSilentHost();
    const { socket } = await world.connect(`api.example:${host.port}`);
    socket.write(HELLO);
    await until(() => host.received().length === HELLO.length);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    await once(socket, 'close');
    expect(host.received()).toEqual(HELLO);

    const other = await world.connect(`api.example:${host.port}`);
    other.socket.write(HELLO);
    await until(() => host.sockets.length === 2 && host.received(1).length === HELLO.length);
    host.sockets[1]?.write('SSH-2.0-OpenSSH_9.9\r\n');
    expect(await text(other.socket).catch(() => '')).toBe('');
  });

  it('whose host resets it before the program begins ends alone', async () => {
    const host = await startSilentHost();
    const early = await world.connect(`api.example:${host.port}`);
    await until(() => host.sockets.length === 1);
    host.sockets[0]?.resetAndDestroy();
    const later = await world.connect(`api.example:${host.port}`);
    early.socket.write(HELLO);
    later.socket.write(HELLO);
    expect(await text(early.socket).catch(() => '')).toBe('');
    await until(() => host.received(1).length === HELLO.length);
    later.socket.destroy();
  });

  it('ends on both sides when one of them goes', async () => {
    const host = await startSilentHost();
    const [one, two] = [
      await world.connect(`api.example:${host.port}`),
      await world.connect(`api.example:${host.port}`),
    ];
    one.socket.write(HELLO);
    two.socket.write(HELLO);
    await until(
      () => host.sockets.length === 2 && host.received(0).length > 0 && host.received(1).length > 0,
    );
    one.socket.resetAndDestroy();
    host.sockets[1]?.resetAndDestroy();
    await until(() => host.sockets.every(({ destroyed }) => destroyed) && world.proxy.held['lasting'] === 0);
    two.socket.destroy();
    await until(() => world.proxy.held['clients'] === 0);
    expect(world.proxy.held).toMatchObject({ lasting: 0, connections: 0 });
  });

  it('ends when its host is no longer open, or for some requests alone, or its sandbox is gone', async () => {
    const host = await startSilentHost();
    for (const change of [
      () => world.allow({ layers: [denying([])] }),
      () => world.allow({ layers: [denying([{ host: 'api.example', port: host.port, methods: ['GET'] }])] }),
      () => world.service.policies.clear(),
    ]) {
      world.allow({});
      const { socket } = await world.connect(`api.example:${host.port}`);
      socket.write(HELLO);
      await until(() => world.proxy.held['lasting'] === 1);
      const closed = once(socket, 'close');
      socket.resume();
      await world.proxy.recheck();
      expect(socket.destroyed).toBe(false);
      change();
      await world.proxy.recheck();
      await closed;
    }
  });

  it('ends though the rules of another sandbox take long to learn', async () => {
    const host = await startSilentHost();
    const other = { sandbox: 'sandbox-2', credential: 'credential-of-sandbox-2' };
    world.allow({ sandbox: other.sandbox }, other.credential);
    const authority = `api.example:${host.port}`;
    const headers = proxyAuthorization(other.credential, other.sandbox);
    const slow = await world.connect(authority, { headers, credential: null });
    const { socket } = await world.connect(authority);
    for (const each of [slow.socket, socket]) {
      each.write(HELLO);
      each.resume();
    }
    await until(() => world.proxy.held['lasting'] === 2);
    const held = Promise.withResolvers<void>();
    world.service.held.set(other.credential, held.promise);
    const closed = once(socket, 'close');
    world.allow({ layers: [denying([])] });
    const compared = world.proxy.recheck();
    await closed;
    expect(socket.destroyed).toBe(true);
    expect(world.service.abandoned).toBe(0);
    expect(slow.socket.destroyed).toBe(false);
    held.resolve();
    await compared;
    slow.socket.destroy();
  });

  it('is compared with its rules each second, also where those take as long to learn', async () => {
    const policies = new PolicySource({ policy: async () => Promise.withResolvers<null>().promise });
    const asked = { target: target('https://api.example:443') };
    const tunnel = { credential: CREDENTIAL, asked, isAllowedOnce: false, end: () => undefined };
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    const compared = endForbidden({ policies, lasting: new Set([tunnel]) });
    try {
      await jest.advanceTimersByTimeAsync(1_000);
    } finally {
      jest.useRealTimers();
    }
    expect(await compared).toBe(0);
  });

  it('is not ended as the request that it was when its rules were asked for', async () => {
    const learnt = Promise.withResolvers<null>();
    const policies = new PolicySource({ policy: async () => learnt.promise });
    const end = jest.fn();
    const asked = { target: target('https://api.example:443') };
    const entry = { credential: CREDENTIAL, asked, isAllowedOnce: false, end };
    const still = { ...entry, end: jest.fn() };
    const lasting = new Set([entry, still]);
    const compared = endForbidden({ policies, lasting });
    lasting.delete(entry);
    learnt.resolve(null);
    await compared;

    expect(still.end).toHaveBeenCalledTimes(1);
    expect(end).not.toHaveBeenCalled();
  });

  it('ends before its first byte', async () => {
    const host = await startSilentHost();
    const { socket } = await world.connect(`api.example:${host.port}`);
    await until(() => world.proxy.held['lasting'] === 1);
    const closed = once(socket, 'close');
    socket.resume();
    world.allow({ layers: [denying([])] });
    await world.proxy.recheck();
    await closed;
    expect(host.received()).toHaveLength(0);
  });

  it('is one connection where it is allowed once', async () => {
    world.allowOnce(`api.example:${port}`);
    const secure = await world.tls(`api.example:${port}`);
    await world.proxy.recheck();
    const url = `https://api.example:${port}/`;
    expect([(await world.over(secure, url)).status, (await world.over(secure, url)).status]).toEqual([
      200, 200,
    ]);
    secure.destroy();
    expect((await world.connect(`api.example:${port}`)).status).toBe(403);
  });

  it('that is allowed once carries one plain request', async () => {
    const name = `api.example:${await world.startHost()}`;
    world.allowOnce(name);
    const { socket } = await world.connect(name);
    expect((await world.over(socket, `http://${name}/one`)).status).toBe(200);
    expect((await world.over(socket, `http://${name}/two`)).status).toBe(403);
    socket.destroy();
  });

  it('which is allowed once ends where the operator closes its host', async () => {
    const layers = [{ ...denying([]), yieldsOnce: true }];
    world.allowOnce(`api.example:${port}`, layers);
    const secure = await world.tls(`api.example:${port}`);
    const closed = once(secure, 'close');
    world.allow({ layers: [...layers, denying([])] });
    await world.proxy.recheck();
    await closed;
    expect(secure.destroyed).toBe(true);
    await until(() => world.proxy.held['lasting'] === 0);
  });
});

interface SilentHost {
  port: number;
  sockets: Socket[];
  received: (index?: number) => Buffer;
}

/** Takes what it gets and says nothing. */
async function startSilentHost(): Promise<SilentHost> {
  const sockets: Socket[] = [];
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    const index = sockets.push(socket) - 1;
    received.push(Buffer.alloc(0));
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      received[index] = Buffer.concat([received[index] ?? Buffer.alloc(0), chunk]);
    });
  });
  world.onStop(async () => {
    sockets.forEach((socket) => socket.destroy());
    const closed = once(server, 'close');
    server.close();
    await closed;
  });
  return {
    port: await startListening(server),
    sockets,
    received: (index = 0) => received[index] ?? Buffer.alloc(0),
  };
}

/** As BoringSSL sends it where it has no key of the server. */
function ech(): Buffer {
  return Buffer.concat([
    Buffer.from([0, 0, 1, 0, 1, 42, 0, 32]),
    Buffer.alloc(32, 7),
    Buffer.from([0, 144]),
    Buffer.alloc(144, 9),
  ]);
}

function nameOf(name: string): Buffer {
  return Buffer.from([0, name.length + 3, 0, 0, name.length, ...Buffer.from(name)]);
}

/** The same message in two records: what looks at the first one alone misses the name. */
function cutIntoRecords(hello: Buffer): Buffer {
  const message = hello.subarray(5);
  const record = (part: Buffer) =>
    Buffer.concat([Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part]);
  return Buffer.concat([record(message.subarray(0, 40)), record(message.subarray(40))]);
}
