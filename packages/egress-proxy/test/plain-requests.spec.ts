import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { until } from '../../../test/support/until.js';
import { ProxyWorld, proxyAuthorization, requestHead } from './support/proxy-world.js';
import { CREDENTIAL, denying, injection, PLACEHOLDER, SANDBOX, VALUE } from './support/sample-policy.js';

let world: ProxyWorld;
let port: number;
let host: string;

beforeEach(async () => {
  world = await ProxyWorld.start();
  port = await world.startHost();
  host = `http://api.example:${port}`;
});

afterEach(async () => {
  await world.stop();
});

describe('who calls', () => {
  it.each<[string, string | null, string]>([
    ['nobody', null, SANDBOX],
    ['an unknown credential', 'unknown', SANDBOX],
    ['the credential of another sandbox', CREDENTIAL, 'sandbox-2'],
  ])('asks %s for a credential', async (_what, credential, sandbox) => {
    const headers = proxyAuthorization(credential, sandbox);
    const answer = await world.http(`${host}/`, { credential: null, headers });
    expect(answer).toMatchObject({
      status: 407,
      headers: { 'proxy-authenticate': 'Basic realm="slipway-egress"' },
    });
    const tunnel = await world.connect('api.example:443', { credential: null, headers });
    expect(tunnel.status).toBe(407);
    expect(world.received).toEqual([]);
  });

  it('tells each sandbox by its own credential, also on one connection', async () => {
    world.allow({ sandbox: 'sandbox-2', layers: [denying([])] }, 'other');
    expect((await world.http(`${host}/`)).status).toBe(200);
    const headers = proxyAuthorization('other', 'sandbox-2');
    expect((await world.http(`${host}/`, { credential: null, headers })).status).toBe(403);
    const get = `GET ${host}/`;
    const both = await world.raw(
      `${requestHead(get)}\r\n${requestHead(get, 'other', 'sandbox-2')}Connection: close\r\n\r\n`,
    );
    expect(both.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 407']);
  });

  it.each(['CONNECT api.example:443', 'GET http://api.example/'])(
    'cuts %s off while an earlier request is under way',
    async (line) => {
      const upgrade = `${line} HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
      world.answer = () => undefined;
      for (const earlier of [
        `${requestHead(`GET ${host}/`)}\r\n`,
        'GET /health HTTP/1.1\r\nHost: x\r\n\r\n',
      ]) {
        expect(await world.raw(earlier + upgrade).catch(() => '')).not.toMatch(/ (407|403|502) /);
      }
      await until(() => Object.values(world.proxy.held).every((count) => count === 0));
    },
  );

  it('has no other page than its health', async () => {
    expect(await world.raw('GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 200[^]*ok\n/,
    );
    const request = `Host: x\r\nProxy-Authorization: ${proxyAuthorization(CREDENTIAL)['Proxy-Authorization']}\r\n\r\n`;
    for (const path of ['/', '/metrics', '/health/', '/api/v1/egress-proxy/policy']) {
      expect(await world.raw(`GET ${path} HTTP/1.1\r\n${request}`)).toMatch(
        /^HTTP\/1.1 403 .*\r\n[^]*reason=protocol/,
      );
    }
  });

  it('passes nothing on to itself', async () => {
    const answer = await world.http(`http://127.0.0.1:${world.port}/health`);
    expect(answer).toMatchObject({ status: 403, headers: { 'x-slipway-egress': 'denied; reason=address' } });
  });
});

describe('a request', () => {
  it('goes to its host and comes back', async () => {
    world.answer = (_request, response) =>
      response
        .writeHead(201, 'Made', {
          'Set-Cookie': ['a=1', 'b=2'],
          'X-Slipway-Egress': 'denied; reason=rule',
          Connection: 'x-own',
          'X-Own': '1',
        })
        .end('made');
    const answer = await world.http(`${host}/a/../b?c=d%20e`, {
      method: 'PUT',
      headers: {
        'X-Given': ['1', '2'],
        Connection: 'X-Mine',
        'X-Mine': '1',
        'Proxy-Connection': 'keep-alive',
        TE: 'trailers',
      },
      body: 'body',
    });
    expect(answer).toMatchObject({ status: 201, body: 'made', headers: { 'set-cookie': ['a=1', 'b=2'] } });
    expect(answer.headers).not.toHaveProperty('x-slipway-egress');
    expect(answer.headers).not.toHaveProperty('x-own');
    const [received] = world.received;
    expect(received).toMatchObject({ method: 'PUT', url: '/a/../b?c=d%20e', body: 'body' });
    expect(received?.headers).toEqual({
      host: `api.example:${port}`,
      'x-given': '1, 2',
      'content-length': '4',
      connection: 'keep-alive',
    });
  });

  it('passes redirects back without following them', async () => {
    world.answer = (_request, response) =>
      response.writeHead(302, { Location: 'http://storage.example/' }).end();
    expect(await world.http(`${host}/`)).toMatchObject({
      status: 302,
      headers: { location: 'http://storage.example/' },
    });
    expect(world.received).toHaveLength(1);
  });

  it('of a denied host is refused in words, and reported', async () => {
    world.allow({ layers: [denying([{ host: 'other.example' }])], phase: 'setup' });
    const answer = await world.http(`${host}/secret/path?token=x`);
    expect(answer).toMatchObject({ status: 403, headers: { 'x-slipway-egress': 'denied; reason=rule' } });
    expect(answer.body).toMatch(/^Slipway's egress proxy denied api\.example:\d+ \(rule\): .*\.\n$/);
    expect(await world.reported()).toEqual([
      expect.objectContaining({
        sandbox: SANDBOX,
        host: 'api.example',
        port,
        method: 'GET',
        path: '/secret/path',
        denied: 'rule',
        rule: null,
        phase: 'setup',
        status: null,
      }),
    ]);
  });

  it('is reported without its query', async () => {
    await world.http(`${host}/path?key=${VALUE}`, { method: 'POST', body: '12345' });
    expect(await world.reported()).toEqual([
      expect.objectContaining({ path: '/path', status: 200, denied: null, sentBytes: 5, receivedBytes: 6 }),
    ]);
  });

  it('is refused before a name is resolved', async () => {
    world.allow({ layers: [denying([])] });
    const answer = await world.http('http://leak.evil.example/');
    expect(answer.headers).toMatchObject({ 'x-slipway-egress': 'denied; reason=rule' });
    expect((await world.connect('leak.evil.example:443')).status).toBe(403);
    expect(world.resolved).toEqual([]);
  });

  it('with a large body that nobody takes can still be read about', async () => {
    const body = 'x'.repeat(8 * 1024 * 1024);
    world.answer = (_request, response) => response.writeHead(413).end('too large');
    const early = await world.http(`${host}/`, {
      method: 'POST',
      body,
      headers: { 'X-Stream': '1', Connection: 'keep-alive' },
    });
    expect(early).toMatchObject({ status: 413, body: 'too large' });
    world.allow({ layers: [denying([])] });
    expect(await world.http(`${host}/`, { method: 'POST', body })).toMatchObject({ status: 403 });
  });

  it('to a host that does not answer fails as the host does', async () => {
    world.allow({ layers: [denying([{ host: 'gone.example', port: 1 }])] });
    const answer = await world.http('http://gone.example:1/');
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining('ECONNREFUSED') });
    expect(answer.headers).not.toHaveProperty('x-slipway-egress');
    expect(await world.reported()).toEqual([expect.objectContaining({ status: 502, denied: null })]);
  });
});

describe('addresses', () => {
  it.each([
    ['private', '10.1.2.3'],
    ['of this machine', '127.0.0.1'],
    ['of a metadata service', 'fd00:ec2::254'],
    ['IPv4 in IPv6', '::ffff:10.0.0.1'],
  ])('a name with an address %s is not dialled', async (_what, address) => {
    world.allow({ networks: [], layers: [denying([{ host: 'api.example', port }])] });
    world.addresses.set('api.example', [address]);
    const answer = await world.http(`${host}/`);
    expect(answer).toMatchObject({ status: 403, headers: { 'x-slipway-egress': 'denied; reason=address' } });
    const tunnel = await world.connect(`api.example:${port}`);
    expect(tunnel).toMatchObject({ status: 403, headers: { 'x-slipway-egress': 'denied; reason=address' } });
  });

  it.each(['127.0.0.1', '0x7f.0.0.1', '[::1]'])(
    'an address in place of a name is denied: %s',
    async (address) => {
      world.allow({ layers: [{ default: 'allow', allow: [{ host: '*.example' }], deny: [] }] });
      const answer = await world.http(`http://${address}/`, { headers: { Host: address } });
      expect(answer).toMatchObject({
        status: 403,
        headers: { 'x-slipway-egress': 'denied; reason=address' },
      });
    },
  );

  it.each(['127.0.0.1', '[::ffff:127.0.0.1]'])(
    'a name for an address that is denied is not dialled: %s',
    async (address) => {
      for (const deny of [[{ host: address }], [{ host: address, port }]]) {
        world.allow({ layers: [denying([{ host: 'api.example', port }], deny)] });
        expect((await world.http(`${host}/`)).headers['x-slipway-egress']).toBe('denied; reason=address');
        expect((await world.connect(`api.example:${port}`)).status).toBe(403);
      }
      world.allow({
        layers: [denying([{ host: 'api.example', port }], [{ host: address, port: port + 1 }])],
      });
      expect((await world.http(`${host}/`)).status).toBe(200);
    },
  );

  it('dials those of a name that may be, of several', async () => {
    world.allow({ networks: [`127.0.0.1:${port}`] });
    world.addresses.set('api.example', ['10.9.9.9', '127.0.0.1']);
    expect((await world.http(`${host}/`)).status).toBe(200);
    world.allow({ networks: ['127.0.0.1:1'] });
    expect((await world.http(`${host}/`)).status).toBe(403);
  });
});

describe('messages that two servers could read differently', () => {
  const credential = proxyAuthorization(CREDENTIAL)['Proxy-Authorization'];
  const message = (lines: string[], body = '') =>
    [
      `POST ${host}/ HTTP/1.1`,
      `Proxy-Authorization: ${credential}`,
      'Connection: close',
      ...lines,
      '',
      body,
    ].join('\r\n');

  it.each<[string, (name: string) => string[], string]>([
    ['another Host', () => ['Host: other.example', 'Content-Length: 0'], ''],
    ['another port in Host', () => ['Host: api.example', 'Content-Length: 0'], ''],
    ['two Hosts', (name) => [`Host: ${name}`, 'Host: other.example', 'Content-Length: 0'], ''],
    ['no Host', () => ['Content-Length: 0'], ''],
    ['two lengths', (name) => [`Host: ${name}`, 'Content-Length: 1', 'Content-Length: 2'], 'ab'],
    [
      'a length and chunks',
      (name) => [`Host: ${name}`, 'Content-Length: 3', 'Transfer-Encoding: chunked'],
      '0\r\n\r\n',
    ],
    ['another coding', (name) => [`Host: ${name}`, 'Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'],
    ['a coding that is none', (name) => [`Host: ${name}`, 'Transfer-Encoding: xchunked'], '0\r\n\r\n'],
    ['a space before the colon', (name) => [`Host: ${name}`, 'Content-Length : 0'], ''],
    ['a folded line', (name) => [`Host: ${name}`, 'X-A: 1', ' Content-Length: 5', 'Content-Length: 0'], ''],
    ['a line break alone', (name) => [`Host: ${name}`, 'X-A: 1\nX-B: 2', 'Content-Length: 0'], ''],
    ['a bare carriage return', (name) => [`Host: ${name}`, 'X-A: 1\rX-B: 2', 'Content-Length: 0'], ''],
    [
      'two credentials',
      (name) => [`Host: ${name}`, 'Authorization: a', 'Authorization: b', 'Content-Length: 0'],
      '',
    ],
    [
      'a size that is none',
      (name) => [`Host: ${name}`, 'Transfer-Encoding: chunked'],
      '0x1\r\na\r\n0\r\n\r\n',
    ],
  ])('%s', async (_what, lines, body) => {
    const answer = await world.raw(message(lines(`api.example:${port}`), body));
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(world.received.filter(({ body: whole }) => whole !== '')).toEqual([]);
    expect(answer).not.toContain('hello');
  });

  it.each([
    ['HTTP/2 from the first byte', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an address of TLS', 'GET https://api.example/ HTTP/1.1\r\nHost: api.example\r\n'],
    ['a user in the address', 'GET http://u:p@api.example/ HTTP/1.1\r\nHost: api.example\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc'],
  ])('%s', async (_what, text) => {
    const answer = await world.raw(`${text}Proxy-Authorization: ${credential}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 (400|403) [^]*reason=protocol/);
  });

  it('drops an upgrade to HTTP/2', async () => {
    const answer = await world.http(`${host}/`, {
      headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' },
    });
    expect(answer.status).toBe(200);
    expect(world.received[0]?.headers).toEqual({ host: `api.example:${port}`, connection: 'keep-alive' });
  });
});

describe('credentials', () => {
  it('go by https alone, unless the entry says http', async () => {
    const headers = { Authorization: `Bearer ${PLACEHOLDER}` };
    world.allow({ injections: [injection({ hosts: [{ host: 'api.example', port }] })] });
    await world.http(`${host}/`, { headers });
    world.allow({ injections: [injection({ hosts: [{ host: 'api.example', port, http: true }] })] });
    await world.http(`${host}/`, { headers });
    expect(world.received.map((each) => each.headers.authorization)).toEqual([
      `Bearer ${PLACEHOLDER}`,
      `Bearer ${VALUE}`,
    ]);
  });

  it('do not come back in an answer, compressed or not', async () => {
    world.allow({ injections: [injection({ hosts: [{ host: 'api.example', port, http: true }] })] });
    const headers = { Authorization: `Bearer ${PLACEHOLDER}`, 'Accept-Encoding': 'gzip' };
    const repeated = () => JSON.stringify(world.received.at(-1)?.headers);
    for (const encoding of ['identity', 'gzip']) {
      world.answer = (incoming, response) => {
        const body = repeated();
        response.writeHead(200, `OK ${VALUE}`, {
          'X-Echo': incoming.headers.authorization,
          'Content-Encoding': encoding,
        });
        response.end(encoding === 'gzip' ? gzipSync(body) : body);
      };
      const answer = await world.http(`${host}/`, { headers });
      expect(answer.headers['x-echo']).toBe(`Bearer ${PLACEHOLDER}`);
      expect(JSON.parse(answer.body)).toMatchObject({
        authorization: `Bearer ${PLACEHOLDER}`,
        'accept-encoding': 'identity',
      });
    }
    world.answer = (_request, response) =>
      response.writeHead(200, { 'Content-Encoding': 'compress' }).end('x');
    expect(await world.http(`${host}/`, { headers })).toMatchObject({
      status: 502,
      body: expect.stringContaining('compress'),
    });
  });

  it('of another length leave no wrong length behind', async () => {
    world.allow({
      injections: [
        injection({ value: 'short-value-42', hosts: [{ host: 'api.example', port, http: true }] }),
      ],
    });
    world.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Length': '28' });
      response.write('short-va');
      setImmediate(() => response.end('lue-42short-value-42'));
    };
    const answer = await world.http(`${host}/`);
    expect(answer.body).toBe(PLACEHOLDER + PLACEHOLDER);
    expect(answer.headers).not.toHaveProperty('content-length');
  });

  it('of the sandbox alone pass where only they may go', async () => {
    world.allow({
      layers: [denying([{ host: 'api.example', port, methods: ['GET'], paths: ['/v1/*'], isOwn: true }])],
      injections: [injection({ hosts: [{ host: 'api.example', port, http: true }] })],
    });
    const status = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
      const answer = await world.http(`${host}${path}`, { headers, method });
      return answer.headers['x-slipway-egress'] ?? answer.status;
    };
    expect(await status('/v1/x')).toBe(200);
    expect(await status('/v1/x', { Authorization: `Bearer ${PLACEHOLDER}` })).toBe(200);
    expect(await status('/v1/x', { Authorization: 'Bearer strangers' })).toBe('denied; reason=credential');
    expect(await status('/v1/x?key=strangers')).toBe('denied; reason=credential');
    expect(await status('/v2/x')).toBe('denied; reason=path');
    expect(await status('/v1/%2e%2e/v2')).toBe('denied; reason=path');
    expect(await status('/v1/x', {}, 'POST')).toBe('denied; reason=method');
    world.allow({
      layers: [
        denying([
          { host: 'api.example', port, isOwn: true },
          { host: 'api.example', port },
        ]),
      ],
    });
    expect(await status('/v1/x', { Authorization: 'Bearer own' })).toBe(200);
  });
});

it('takes no session of a stranger to a host that is open for own credentials alone', async () => {
  const cookie = async (isOwn: boolean): Promise<string | undefined> => {
    world.allow({ layers: [denying([{ host: 'api.example', port, isOwn }])] });
    await world.http(`${host}/`, { headers: { Cookie: 'session=of-a-stranger' } });
    return world.received.at(-1)?.headers['cookie'];
  };
  expect([await cookie(true), await cookie(false)]).toEqual([undefined, 'session=of-a-stranger']);
});

describe('allowed once', () => {
  it('lets one request pass, and uses nothing up where the rules let it', async () => {
    world.allowOnce(`api.example:${port}`);
    const statuses = [(await world.http(`${host}/`)).status, (await world.http(`${host}/`)).status];
    expect(statuses).toEqual([200, 403]);
    world.service.allowedOnce.add(`${SANDBOX} api.example:${port}`);
    world.allow({ once: [`api.example:${port}`] });
    expect((await world.http(`${host}/`)).status).toBe(200);
    expect(world.service.allowedOnce.size).toBe(1);
  });

  it('lets nothing pass that the operator refuses, and uses nothing up for it', async () => {
    world.allowOnce(`api.example:${port}`, [denying([])]);
    expect((await world.http(`${host}/`)).status).toBe(403);
    expect(world.service.allowedOnce.size).toBe(1);
  });
});

describe('a request that is under way', () => {
  it.each([
    ['before its answer', () => undefined],
    ['in its answer', (response: ServerResponse) => void response.write('begun')],
  ])('%s ends when the rules refuse it, as where a setup is over', async (_when, begin) => {
    const asked = Promise.withResolvers<void>();
    world.answer = (_request, response) => {
      begin(response);
      asked.resolve();
    };
    world.allow({ phase: 'setup' });
    const ended = world.http(`${host}/slow`).then(
      ({ status }) => status,
      () => 'cut off',
    );
    await asked.promise;
    await world.proxy.recheck();
    expect(world.proxy.held['lasting']).toBe(1);
    world.allow({ layers: [denying([])] });
    await world.proxy.recheck();
    expect(await ended).not.toBe(200);
    await until(() => world.proxy.held['lasting'] === 0);
  });
});

describe('while the service is away', () => {
  it('goes on for sandboxes that it knows', async () => {
    expect((await world.http(`${host}/`)).status).toBe(200);
    world.service.failure = 500;
    expect((await world.http(`${host}/`)).status).toBe(200);
    const answer = await world.http(`${host}/`, { credential: 'other' });
    expect(answer).toMatchObject({ status: 503, body: expect.stringContaining('cannot learn the rules') });
    world.service.failure = null;
    await world.reported();
    await until(() => world.service.reported.length === 2);
  });
});
