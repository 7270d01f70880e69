import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HostAllowlist } from './host-allowlist.js';
import { type FakeRequest, FakeServer } from '../../../../test/fakes/fake-server.js';
import { RawServer } from '../../../../test/support/raw-server.js';
import { upstreamFailure } from '../../../../test/support/upstream-failure.js';
import { GuardedHttpClient, type GuardedRequestInit } from './guarded-http.client.js';

const MAX_BYTES = 100_000;
const SECRET = 'token-of-the-user';

describe('GuardedHttpClient', () => {
  let server: FakeServer;
  let other: FakeServer;
  let client: GuardedHttpClient;
  let raw: RawServer | undefined;
  let holder: string | undefined;

  beforeEach(async () => {
    server = await FakeServer.start((request) => answer(request));
    other = await FakeServer.start(() => ({ body: 'other' }));
    client = clientFor(() => holder, server.origin, other.origin);
  });

  afterEach(async () => {
    await Promise.all([server.close(), other.close(), raw?.close()]);
    raw = undefined;
    holder = undefined;
    await client.close();
  });

  /** A server of its own for answers that the fake would not give. */
  async function startRaw(listener: RequestListener): Promise<string> {
    raw = await RawServer.start(listener);
    await client.close();
    client = clientFor(() => holder, raw.origin);
    return raw.origin;
  }

  /** Makes the server redirect one path. */
  function redirectTo(location: string, from: string, status = 302): void {
    server.injectFault(
      { kind: 'status', status, headers: { location }, body: 'moved' },
      { match: (request) => request.path === from },
    );
  }

  describe('requests', () => {
    it('sends method, path, query, headers and body', async () => {
      const response = await client.fetch(`${server.origin}/a%2Fb?c=d%20e`, {
        method: 'post',
        headers: { Authorization: `Bearer ${SECRET}`, 'Content-Type': 'application/json', 'User-Agent': 'x' },
        body: '{"é":1}',
      });

      expect(response).toBeInstanceOf(Response);
      expect(response.status).toBe(200);
      expect(server.requests).toHaveLength(1);
      expect(server.requests[0]).toMatchObject({
        method: 'POST',
        path: '/a%2Fb',
        headers: {
          authorization: `Bearer ${SECRET}`,
          'content-type': 'application/json',
          'content-length': '8',
          'user-agent': 'x',
        },
        body: '{"é":1}',
      });
      expect(server.requests[0]?.query.get('c')).toBe('d e');
    });

    it("ignores a caller's host header and members of other fetch implementations", async () => {
      const init = { headers: { Host: 'evil.example' }, redirect: 'error', duplex: 'half', keepalive: true };

      await client.fetch(new URL(server.origin), init);

      expect(server.requests[0]?.headers.host).toBe(new URL(server.origin).host);
    });

    it.each([
      [200, 'application/json; charset=utf-8'],
      [404, 'application/json'],
      [500, 'application/json'],
    ])('answers status %i with headers and body', async (status, type) => {
      server.injectFault({
        kind: 'status',
        status,
        headers: { 'content-type': type, etag: '"x"' },
        body: { a: 1 },
      });

      const response = await client.fetch(server.origin);

      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toBe(type);
      expect(response.headers.get('etag')).toBe('"x"');
      expect(await response.json()).toEqual({ a: 1 });
    });

    it.each([204, 304])('returns status %i without a body', async (status) => {
      const origin = await startRaw((_request, response) => {
        response.writeHead(status, { etag: '"x"' }).end();
      });

      const response = await client.fetch(origin);

      expect(response.status).toBe(status);
      expect(response.body).toBeNull();
    });

    it('does not take the announced length of a HEAD response for a body', async () => {
      const origin = await startRaw((_request, response) => {
        response.writeHead(200, { 'content-length': MAX_BYTES + 1, 'content-encoding': 'gzip' }).end();
      });

      expect((await client.fetch(origin, { method: 'HEAD' })).status).toBe(200);
    });

    it('takes header values that are not ASCII', async () => {
      const origin = await startRaw((_request, response) => {
        response.writeHead(200, { 'x-title': Buffer.from('żółw', 'utf8').toString('latin1') }).end('x');
      });

      const value = (await client.fetch(origin)).headers.get('x-title') ?? '';

      expect(Buffer.from(value, 'latin1').toString('utf8')).toBe('żółw');
    });
  });

  describe('redirects', () => {
    it('follows two to the same origin, with credentials', async () => {
      redirectTo('/two?x=1', '/one');
      redirectTo(`${server.origin}/three`, '/two');

      const response = await client.fetch(`${server.origin}/one`, { headers: { authorization: SECRET } });

      expect(await response.json()).toMatchObject({ path: '/three' });
      expect(server.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
        ['/one', SECRET],
        ['/two', SECRET],
        ['/three', SECRET],
      ]);
    });

    it('refuses a third', async () => {
      redirectTo('/one', '/one');

      expect((await upstreamFailure(client.fetch(`${server.origin}/one`))).reason).toBe('redirect');
      expect(server.requests).toHaveLength(3);
    });

    it.each<[string, (own: string, foreign: string) => string]>([
      ['another port', (_own, foreign) => `${foreign}/stolen`],
      ['another scheme', (own) => own.replace('http:', 'https:')],
      ['another name of the same machine', (own) => own.replace('127.0.0.1', 'localhost')],
      ['a host without scheme', (_own, foreign) => foreign.replace('http:', '')],
      ['user info', (own) => own.replace('//', '//user:password@')],
      ['something that is no address', () => 'http://['],
      ['another protocol', () => 'file:///etc/passwd'],
    ])('refuses one to %s', async (_name, location) => {
      redirectTo(location(server.origin, other.origin), '/one');

      const error = await upstreamFailure(
        client.fetch(`${server.origin}/one`, { headers: { authorization: SECRET } }),
      );

      expect(error.reason).toBe('redirect');
      expect(error.origin).toBe(server.origin);
      expect(server.requests).toHaveLength(1);
      expect(other.requests).toHaveLength(0);
    });

    describe('of a log', () => {
      const log = { headers: { authorization: SECRET }, tailBytes: 1_000 };

      it('leads to its storage, without credentials', async () => {
        redirectTo(`${other.origin}/log?signature=1`, '/one');

        const response = await client.fetch(`${server.origin}/one`, log);

        expect(await response.text()).toBe('other');
        expect(other.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
          ['/log', undefined],
        ]);
      });

      it('leads to no address that may not be called', async () => {
        redirectTo('http://169.254.169.254/latest/meta-data', '/one');

        expect((await upstreamFailure(client.fetch(`${server.origin}/one`, log))).reason).toBe('refused');
      });

      it('gets no credentials back on its way home', async () => {
        redirectTo(`${other.origin}/two`, '/one');
        other.injectFault({ kind: 'redirect', location: `${server.origin}/three` });

        await client.fetch(`${server.origin}/one`, log);

        expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([SECRET, undefined]);
      });

      it('keeps its end, however long it is', async () => {
        other.injectFault({ kind: 'status', status: 200, body: `${'x'.repeat(5_000_000)}the end` });

        const text = await (await client.fetch(other.origin, log)).text();

        expect([text.length, text.slice(-9)]).toEqual([1_000, 'xxthe end']);
      });
    });

    it.each([
      [301, 'POST', 'GET', ''],
      [302, 'POST', 'GET', ''],
      [303, 'PUT', 'GET', ''],
      [302, 'PUT', 'PUT', 'x'],
      [307, 'POST', 'POST', 'x'],
      [308, 'POST', 'POST', 'x'],
    ])('%i turns %s into %s', async (status, method, expected, body) => {
      redirectTo('/two', '/one', status);

      await client.fetch(`${server.origin}/one`, {
        method,
        body: 'x',
        headers: { 'content-type': 'text/plain' },
      });

      expect(server.requests[1]).toMatchObject({ method: expected, body });
      expect(server.requests[1]?.headers['content-type']).toBe(body === '' ? undefined : 'text/plain');
    });

    it('returns a redirect status without a location', async () => {
      server.injectFault({ kind: 'status', status: 302 });

      expect((await client.fetch(server.origin)).status).toBe(302);
    });
  });

  it('says nothing about path, query, headers or body in its errors', async () => {
    const url = `${server.origin}/${SECRET}?key=${SECRET}`;
    const init = { method: 'POST', headers: { authorization: SECRET }, body: SECRET };
    const faults = [
      { kind: 'reset' },
      { kind: 'huge', bytes: 1_000_000 },
      { kind: 'redirect', location: `${other.origin}/${SECRET}` },
    ] as const;
    for (const fault of faults) {
      server.injectFault(fault, { times: 1 });
      const error = await upstreamFailure(client.fetch(url, init));
      const { cause } = error;

      expect(error.origin).toBe(server.origin);
      expect(`${error.message} ${String(cause)} ${JSON.stringify(Object.entries(error))}`).not.toContain(
        SECRET,
      );
      expect(error.stack).not.toContain(SECRET);
    }
    const invalid = await upstreamFailure(
      client.fetch(server.origin, { headers: { authorization: `${SECRET}\n` } }),
    );
    expect(`${invalid.message} ${String(invalid.cause)}`).not.toContain(SECRET);
  });

  describe('connections', () => {
    let origin: string;

    function send(count: number, init: GuardedRequestInit = {}): Promise<Response>[] {
      return Array.from({ length: count }, () => client.fetch(`${origin}/hang`, init));
    }

    it('are reused, one request at a time on each', async () => {
      const sockets = new Set<unknown>();
      let inFlight = 0;
      let pipelined = false;
      const busy = new Set<unknown>();
      const origin = await startRaw((request, response) => {
        sockets.add(request.socket);
        pipelined ||= busy.has(request.socket);
        busy.add(request.socket);
        inFlight += 1;
        response.once('close', () => {
          busy.delete(request.socket);
        });
        response.end('x');
      });

      for (let round = 0; round < 5; round += 1) {
        await client.fetch(origin, { headers: { authorization: `user ${round}` } });
        // A connection is free again one turn of the event loop after its answer.
        await nextTurn();
      }
      expect(sockets.size).toBe(1);

      await Promise.all(Array.from({ length: 10 }, () => client.fetch(origin)));
      expect(inFlight).toBe(15);
      expect(pipelined).toBe(false);
      expect(sockets.size).toBeLessThanOrEqual(10);
    });

    it('are bounded per origin, and further requests wait in line', async () => {
      const waiting: (() => void)[] = [];
      const sockets = new Set<unknown>();
      const full = Promise.withResolvers<void>();
      const origin = await startRaw((request, response) => {
        sockets.add(request.socket);
        waiting.push(() => response.end('x'));
        if (waiting.length === 128) {
          full.resolve();
        }
      });

      const answers = Array.from({ length: 134 }, (_, index) =>
        client.fetch(origin, { holder: `user ${index % 5}` }),
      );
      await full.promise;
      for (let served = 0; served < 134; served += 1) {
        await until(() => waiting.length > served);
        waiting[served]?.();
      }
      await Promise.all(answers);

      expect(sockets.size).toBe(128);
    });

    it.each<[string, (count: number) => Promise<Response>[]]>([
      [
        'of whom the client finds',
        (count) => {
          holder = 'bob';
          return send(count);
        },
      ],
      ['of the user whom the caller names', (count) => send(count, { holder: 'bob' })],
      ['of nobody', (count) => send(count)],
    ])('are there for others where %s hang', async (_name, sendHanging) => {
      const hanging: (() => void)[] = [];
      const full = Promise.withResolvers<void>();
      origin = await startRaw((request, response) => {
        if (request.url === '/hang') {
          hanging.push(() => response.end());
          if (hanging.length === 32) {
            full.resolve();
          }
        } else {
          response.end('x');
        }
      });

      const requests = sendHanging(130);
      const outcomes = Promise.allSettled(requests);
      await full.promise;
      expect((await upstreamFailure(requests[32] ?? Promise.reject(new Error('none')))).reason).toBe('share');
      expect(await (await client.fetch(origin, { holder: 'alice' })).text()).toBe('x');
      hanging.forEach((answer) => answer());
      expect((await outcomes).filter(({ status }) => status === 'fulfilled')).toHaveLength(32);
    });
  });
});

function clientFor(currentHolder: () => string | undefined, ...allowed: string[]): GuardedHttpClient {
  return new GuardedHttpClient({
    currentHolder,
    allowlist: HostAllowlist.parse(allowed),
    maxResponseBytes: MAX_BYTES,
    timeoutMs: 20_000,
  });
}

function answer({ method, path, headers, body }: FakeRequest): { body: unknown } {
  return { body: { method, path, headers, body } };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await nextTurn();
  }
}

async function nextTurn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
