import type { RequestListener } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { inspect } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HostAllowlist } from './host-allowlist.js';
import { FakeServer } from '../../../../test/fakes/fake-server.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { RawServer } from '../../../../test/support/raw-server.js';
import { upstreamFailure } from '../../../../test/support/upstream-failure.js';
import { GuardedHttpClient } from './guarded-http.client.js';

const MAX_BYTES = 400_000;
/** Has about as many values as a repository of GitHub or a project of GitLab. */
const REPOSITORY = Object.fromEntries(Array.from({ length: 180 }, (_, index) => [`m${index}`, 0]));

describe('limits of GuardedHttpClient', () => {
  let server: FakeServer;
  let client: GuardedHttpClient;
  let raw: RawServer | undefined;

  beforeEach(async () => {
    server = await FakeServer.start(() => ({ body: 'ok' }));
    client = clientFor(server.origin);
  });

  afterEach(async () => {
    await Promise.all([server.close(), raw?.close()]);
    raw = undefined;
    await client.close();
  });

  async function startRaw(listener: RequestListener): Promise<string> {
    raw = await RawServer.start(listener);
    await client.close();
    client = clientFor(raw.origin);
    return raw.origin;
  }

  describe('size', () => {
    it('accepts a response of exactly the cap', async () => {
      const body = 'x'.repeat(MAX_BYTES);
      server.injectFault({ kind: 'status', status: 200, body });

      expect(await (await client.fetch(server.origin)).text()).toBe(body);
    });

    it('refuses 10 MB', async () => {
      server.injectFault({ kind: 'huge', bytes: 10_000_000 });

      expect((await upstreamFailure(client.fetch(server.origin))).reason).toBe('too_large');
    });

    it('refuses an announced size before it arrives', async () => {
      const origin = await startRaw((_request, response) => {
        response.writeHead(200, { 'content-length': MAX_BYTES + 1 });
        response.write('x');
      });

      expect((await upstreamFailure(client.fetch(origin))).reason).toBe('too_large');
    });

    it('stops a stream that never ends', async () => {
      let written = 0;
      const origin = await startRaw((_request, response) => {
        const pump = (): void => {
          while (!response.destroyed && response.write('x'.repeat(10_000))) {
            written += 10_000;
          }
        };
        response.on('drain', pump);
        pump();
      });

      expect((await upstreamFailure(client.fetch(origin))).reason).toBe('too_large');
      expect(written).toBeLessThan(1_000 * MAX_BYTES);
    });

    it.each([
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
    ] as const)('reads %s and refuses a bomb', async (encoding, compress) => {
      const origin = await startRaw((request, response) => {
        const body = request.url === '/bomb' ? Buffer.alloc(5_000_000) : Buffer.from('{"a":1}');
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding });
        response.end(compress(body));
      });

      const response = await client.fetch(origin);
      expect(await response.json()).toEqual({ a: 1 });
      expect(response.headers.has('content-encoding')).toBe(false);
      expect((await upstreamFailure(client.fetch(`${origin}/bomb`))).reason).toBe('too_large');
    });

    it.each([
      ['an encoding that was not asked for', 'zstd', Buffer.from('x')],
      ['stacked encodings', 'gzip, gzip', gzipSync(gzipSync('x'))],
      ['a broken stream', 'gzip', Buffer.from('not gzip')],
      ['a stream cut off', 'gzip', gzipSync('x'.repeat(100)).subarray(0, 20)],
    ])('refuses %s', async (_name, encoding, body) => {
      const origin = await startRaw((_request, response) => {
        response.writeHead(200, { 'content-encoding': encoding }).end(body);
      });

      expect((await upstreamFailure(client.fetch(origin))).reason).toBe('malformed');
    });
  });

  describe('shape', () => {
    const REFUSED: readonly (readonly [string, string])[] = [
      ['a list of too many elements', `[${'{},'.repeat(10_000)}{}]`],
      ['an object of too many members', `{${'"a":0,'.repeat(10_000)}"a":0}`],
      [
        'too many values in lists of few',
        `[${Array<string>(300)
          .fill(`[${'0,'.repeat(200)}0]`)
          .join()}]`,
      ],
      ['values that are too deep', `${'['.repeat(65)}${']'.repeat(65)}`],
    ];

    it.each(REFUSED)('refuses %s, whatever it says of its type and encoding', async (_name, body) => {
      const origin = await startRaw((request, response) => {
        const isPacked = request.url === '/packed';
        response.writeHead(request.url === '/failure' ? 502 : 200, {
          'content-type': request.url === '/text' ? 'text/plain' : 'application/json',
          ...(isPacked && { 'content-encoding': 'gzip' }),
        });
        response.end(isPacked ? gzipSync(body) : body);
      });

      for (const path of ['', '/packed', '/text', '/failure']) {
        expect((await upstreamFailure(client.fetch(`${origin}${path}`))).reason).toBe('too_large');
      }
    });

    it.each([
      ['a page of a hundred repositories', JSON.stringify(Array<object>(100).fill(REPOSITORY))],
      ['brackets in a text', JSON.stringify({ text: '['.repeat(50_000) })],
      ['a page for people, whose brackets do not match', `<p>(]}</p>${'['.repeat(100)}`],
    ])('accepts %s', async (_name, body) => {
      server.injectFault({ kind: 'status', status: 200, body });

      expect(await (await client.fetch(server.origin)).text()).toBe(body);
    });

    it('refuses a body of very many tiny chunks before its end, and takes one of many ordinary ones', async () => {
      const origin = await startRaw((request, response) => {
        response.writeHead(200, { 'content-type': 'text/plain' }).flushHeaders();
        // Below Node.js, which would wait between chunks. The tiny ones never end.
        response.socket?.write(
          request.url === '/tiny'
            ? '1\r\nx\r\n'.repeat(5_000)
            : `${'80\r\n'.concat('x'.repeat(128), '\r\n').repeat(3_000)}0\r\n\r\n`,
        );
      });

      expect((await upstreamFailure(client.fetch(`${origin}/tiny`))).reason).toBe('too_large');
      expect(await (await client.fetch(origin)).text()).toHaveLength(3_000 * 128);
    });
  });

  describe('time', () => {
    it.each([
      ['before the answer', false],
      ['within the body', true],
    ])('gives up at the deadline %s', async (_name, startsBody) => {
      const origin = await startRaw((_request, response) => {
        if (startsBody) {
          response.writeHead(200).write('{');
        }
      });

      expect((await upstreamFailure(client.fetch(origin, { timeoutMs: 50 }))).reason).toBe('timeout');
    });

    it('gives up when the caller does, and hangs up', async () => {
      const controller = new AbortController();
      const hungUp = Promise.withResolvers<void>();
      const origin = await startRaw((request) => {
        request.once('close', hungUp.resolve);
        controller.abort();
      });

      expect((await upstreamFailure(client.fetch(origin, { signal: controller.signal }))).reason).toBe(
        'timeout',
      );
      await hungUp.promise;
    });

    it('does not start when the caller has given up already', async () => {
      expect(
        (await upstreamFailure(client.fetch(server.origin, { signal: AbortSignal.abort() }))).reason,
      ).toBe('timeout');
      expect(server.requests).toHaveLength(0);
    });

    it('times out on a name server that does not respond', async () => {
      await client.close();
      client = new GuardedHttpClient({
        allowlist: HostAllowlist.parse([]),
        maxResponseBytes: MAX_BYTES,
        timeoutMs: 50,
        lookup: () => new Promise(() => undefined),
      });

      expect((await upstreamFailure(client.fetch('https://git.example.com'))).reason).toBe('timeout');
    });
  });

  describe('broken connections', () => {
    it('reports a closed port', async () => {
      await server.close();

      expect((await upstreamFailure(client.fetch(server.origin))).reason).toBe('network');
    });

    it('reports a body that ends early', async () => {
      const origin = await startRaw((_request, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{"a":', () => {
          response.destroy();
        });
      });

      expect((await upstreamFailure(client.fetch(origin))).reason).toBe('network');
    });

    it('reports a response that is not HTTP, without repeating it', async () => {
      const tcp = createTcpServer((socket) => {
        socket.once('data', (request) => socket.end(`SECRET ${request.toString('latin1')}`));
      });
      const origin = `http://127.0.0.1:${await startListening(tcp)}`;
      const caller = clientFor(origin);

      const error = await upstreamFailure(caller.fetch(`${origin}/PATH`));
      await caller.close();
      tcp.close();

      expect(error.reason).toBe('network');
      expect(error.cause).toBeInstanceOf(Error);
      expect(inspect(error)).not.toMatch(/SECRET|PATH/);
    });

    it('reports a client that was closed', async () => {
      await client.close();

      expect((await upstreamFailure(client.fetch(server.origin))).reason).toBe('network');
      await expect(client.close()).resolves.toBeUndefined();
    });

    it('lets requests under way finish before it closes', async () => {
      const arrived = Promise.withResolvers<() => void>();
      const origin = await startRaw((_request, response) => {
        arrived.resolve(() => response.end('late'));
      });
      const answer = client.fetch(origin);
      const finish = await arrived.promise;
      const closing = client.close();
      finish();

      expect(await (await answer).text()).toBe('late');
      await closing;
    });

    it('reports a reset, and works again afterwards', async () => {
      server.injectFault({ kind: 'reset' }, { times: 1 });

      expect((await upstreamFailure(client.fetch(server.origin))).reason).toBe('network');
      expect((await client.fetch(server.origin)).status).toBe(200);
    });
  });
});

function clientFor(...allowed: string[]): GuardedHttpClient {
  return new GuardedHttpClient({
    allowlist: HostAllowlist.parse(allowed),
    maxResponseBytes: MAX_BYTES,
    timeoutMs: 20_000,
  });
}
