import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { TestApp } from '../support/create-test-app.js';
import { useFiles } from '../support/use-files.js';
import { useTestApp } from '../support/use-test-app.js';

const PAGE = '<!DOCTYPE html><html><head><title>Console</title></head><body></body></html>';
const SCRIPT = 'export {};';
const ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>';
const AS_BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

interface Answer {
  status: number | undefined;
  headers: IncomingMessage['headers'];
  text: string;
}

/** Sends the path as it is, and leaves the body as it comes. */
async function ask(
  app: TestApp,
  address: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  const asked = httpRequest(app.url, { path: address, headers, method }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const text = Buffer.concat(await response.toArray()).toString('utf8');
  return { status: response.statusCode, headers: response.headers, text };
}

describe('the console', () => {
  const folder = useFiles({
    'secret.txt': 'beside the console',
    'built/index.html': PAGE,
    'built/favicon.svg': ICON,
    'built/assets/index-1a2b.js': SCRIPT,
  });
  const app = useTestApp({}, { consoleFolder: path.join(folder, 'built') });

  it.each(['/', '/console', '/console/', '/console/conversations/0f3b', '/console/index.html', '/?a=b'])(
    'answers a browser at %s directly',
    async (address) => {
      const { status, headers, text } = await ask(app, address, AS_BROWSER);

      expect([status, text]).toEqual([200, PAGE]);
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    },
  );

  it('runs and reaches nothing but what the service sends, and is framed by nobody', async () => {
    for (const address of ['/', '/console/', '/console/assets/index-1a2b.js']) {
      const { headers } = await ask(app, address, AS_BROWSER);
      const policy = String(headers['content-security-policy']).split('; ');

      expect(policy).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "object-src 'none'",
          "base-uri 'none'",
          "frame-ancestors 'none'",
        ]),
      );
      expect(policy.join()).not.toMatch(/unsafe|http|\*/);
    }
  });

  it.each<[string, Record<string, string>]>([
    ['nothing', {}],
    ['anything', { Accept: '*/*' }],
    ['JSON', { Accept: 'application/json' }],
    ['no page', { Accept: 'application/json, text/html;q=0' }],
    ['any text', { Accept: 'text/*' }],
  ])('leaves / to JSON for a program that accepts %s', async (_name, accept) => {
    const { status, headers, text } = await ask(app, '/', accept);

    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(headers.vary).toContain('Accept');
    const overview = JSON.parse(text) as Record<string, string>;
    expect(overview).toMatchObject({ title: 'Slipway', console: '/console/' });
    for (const address of ['docs', 'openapi', 'health', 'console']) {
      expect([address, (await ask(app, overview[address] ?? '')).status]).toEqual([address, 200]);
    }
  });

  it('always has a page below /console/, whatever is accepted', async () => {
    for (const address of ['/console/work', '/console/assets']) {
      expect(await ask(app, address)).toMatchObject({ status: 200, text: PAGE });
    }
  });

  it.each([
    ['assets/index-1a2b.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable', SCRIPT],
    ['favicon.svg', 'image/svg+xml', 'no-cache', ICON],
  ])('has %s, which browsers keep as long as its name says', async (name, type, cache, expected) => {
    const { headers, text } = await ask(app, `/console/${name}`);

    expect(text).toBe(expected);
    expect(headers).toMatchObject({ 'content-type': type, 'cache-control': cache });
  });

  it.each([
    '/console/assets/index-gone.js',
    '/console/none.png',
    '/console/../secret.txt',
    '/console/%2e%2e/secret.txt',
    '/console/..%2fsecret.txt',
    '/console/conversations/logo.svg',
  ])('has no file %s, for a browser too', async (address) => {
    const { status, text } = await ask(app, address, AS_BROWSER);

    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({ code: 'not_found' });
  });

  it('is read only, and is there under the names of the service only', async () => {
    expect((await ask(app, '/console/', AS_BROWSER, 'POST')).status).toBe(404);
    expect((await ask(app, '/', { ...AS_BROWSER, Host: 'evil.example' })).status).toBe(421);
  });
});
