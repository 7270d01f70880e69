import { once } from 'node:events';
import { IncomingMessage, request as httpRequest } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { useTestApp } from '../support/use-test-app.js';

const UNPACK: Record<string, (body: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  identity: (body) => body,
};

interface Answer {
  status: number | undefined;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

describe('the OpenAPI document and its pages', () => {
  const app = useTestApp();

  /** Neither unpacks what comes nor asks for more than the test says. */
  async function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    const asked = httpRequest(`${app.url}${path}`, { method, headers }).end();
    const [response]: unknown[] = await once(asked, 'response');
    if (!(response instanceof IncomingMessage)) {
      throw new Error('no response');
    }
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  }

  it.each([
    '/openapi.json',
    '/docs/swagger-ui-bundle.js',
    '/docs/swagger-ui.css',
    '/docs/swagger-ui-init.js',
  ])('sends %s as the client accepts it, and 304 to a client that has it', async (path) => {
    const plain = await get(path);
    const tags = new Set<unknown>();
    for (const [accepted, coding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip;q=0.5', 'gzip'],
      ['br;q=0, gzip', 'gzip'],
      ['identity', 'identity'],
    ] as const) {
      const { status, headers, body } = await get(path, { 'Accept-Encoding': accepted });
      const { etag = '' } = headers;
      tags.add(etag);

      expect(status).toBe(200);
      expect(headers).toMatchObject({
        'cache-control': 'no-cache',
        'content-length': String(body.length),
        etag: expect.stringMatching(/^"[\w-]{43}"$/),
        vary: expect.stringContaining('Accept-Encoding'),
      });
      expect(headers['content-encoding'] ?? 'identity').toBe(coding);
      expect(UNPACK[coding]?.(body).equals(plain.body)).toBe(true);

      const again = await get(path, { 'Accept-Encoding': accepted, 'If-None-Match': etag });
      expect([again.status, again.body.length, again.headers.etag]).toEqual([304, 0, etag]);
    }
    expect(tags.size).toBe(3);
  });

  it.each(['/docs', '/docs/', '/docs/index.html'])(
    'has its page at %s, under a policy of its own',
    async (path) => {
      const { status, headers, body } = await get(path);

      expect(status).toBe(200);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(headers['content-security-policy']).toContain("script-src 'self'");
      expect(headers['strict-transport-security']).toBeUndefined();
      expect(body.toString()).toContain('Slipway API');
      const loaded = [...body.toString().matchAll(/(?:src|href)="([^"]+)"/g)].map(
        ([, address = '']) => address,
      );
      expect(loaded).toHaveLength(5);
      for (const address of loaded) {
        expect((await get(address)).status).toBe(200);
      }
    },
  );

  it.each(['br', 'gzip'])('sends the page and all that it loads in at most 800 kB, as %s', async (coding) => {
    const page = (await get('/docs')).body.toString();
    const loaded = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
    let bytes = 0;
    for (const address of ['/docs', ...loaded, '/openapi.json']) {
      bytes += (await get(address, { 'Accept-Encoding': coding })).body.length;
    }

    expect(bytes).toBeLessThanOrEqual(800_000);
  });

  it('answers HEAD without a body', async () => {
    const { status, headers, body } = await get('/openapi.json', {}, 'HEAD');

    expect([status, body.length]).toEqual([200, 0]);
    expect(Number(headers['content-length'])).toBe((await get('/openapi.json')).body.length);
  });

  it.each([
    '/docs/swagger-ui-bundle.js.map',
    '/docs/package.json',
    '/docs/absolute-path.js',
    '/docs/none',
    '/docs-yaml',
    '/docs-json',
  ])('has nothing at %s, which no page loads', async (path) => {
    expect((await get(path)).status).toBe(404);
  });
});
