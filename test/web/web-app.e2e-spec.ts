import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { webAppMiddleware } from '../../src/web/web-app.middleware.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';

const INLINE = 'window.begun = true;';
const PAGE = `<!DOCTYPE html><html><head><title>App</title></head><body><script>${INLINE}</script></body></html>`;
const AS_BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

describe('a web application on the origin of the service', () => {
  let folder: string;
  let app: TestApp;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'web-app-'));
    await mkdir(path.join(folder, 'build/assets'), { recursive: true });
    await writeFile(path.join(folder, 'secret.txt'), 'beside the application');
    await writeFile(path.join(folder, 'build/index.html'), PAGE);
    await writeFile(path.join(folder, 'build/.hidden'), 'hidden');
    await writeFile(path.join(folder, 'build/assets/app-1a2b.js'), 'export {};');
    app = await createTestApp({ WEB_APP_FOLDER: path.join(folder, 'build') });
  });

  afterAll(async () => {
    await app.close();
    await rm(folder, { recursive: true, force: true });
  });

  it.each(['/', '/index.html', '/conversations/0f3b', '/settings/mcp?from=home', '/apiary'])(
    'has its page at %s',
    async (address) => {
      const response = await fetch(`${app.url}${address}`, { headers: AS_BROWSER });

      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-cache');
      expect(await response.text()).toContain('<title>App</title>');
    },
  );

  it('runs no scripts but those of the page, and is framed by nobody else', async () => {
    const response = await fetch(`${app.url}/`, { headers: AS_BROWSER });
    const policy = response.headers.get('content-security-policy') ?? '';
    const scripts = policy.split('; ').find((directive) => directive.startsWith('script-src'));
    const inline = [...(await response.text()).matchAll(/<script>([^]*?)<\/script>/g)].map(
      ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
    );

    expect(inline).toHaveLength(2);
    expect(scripts).toBe(`script-src 'self' 'wasm-unsafe-eval' ${inline.join(' ')}`);
    expect(policy).toContain("frame-ancestors 'self'");
    expect(policy).toContain("connect-src 'self' data: blob: https://registry.npmjs.org http://localhost:* ");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('is sent as it was built where the service listens for others: no script of the service is in it', async () => {
    const shared = await createTestApp({ WEB_APP_FOLDER: path.join(folder, 'build'), HOST: '0.0.0.0' });
    try {
      const response = await fetch(`${shared.url}/`, { headers: AS_BROWSER });
      const digest = createHash('sha256').update(INLINE).digest('base64');

      expect(await response.text()).toBe(PAGE);
      expect(response.headers.get('content-security-policy')).toContain(
        `script-src 'self' 'wasm-unsafe-eval' 'sha256-${digest}'; `,
      );
    } finally {
      await shared.close();
    }
  });

  it('is not sent again to a browser that has it', async () => {
    const asked = { ...AS_BROWSER, 'Accept-Encoding': 'gzip, br' };
    const response = await fetch(`${app.url}/`, { headers: asked });
    const headers = { ...asked, 'If-None-Match': response.headers.get('etag') ?? '' };

    expect(response.headers.get('content-encoding')).toBe('br');
    expect((await fetch(`${app.url}/conversations/0f3b`, { headers })).status).toBe(304);
  });

  it('has no key in what it sends', async () => {
    const response = await fetch(`${app.url}/`, { headers: { ...AS_BROWSER, ...app.admin.headers } });

    expect(await response.text()).not.toContain(app.admin.key);
  });

  it('has its files, which change their names with their content', async () => {
    const response = await fetch(`${app.url}/assets/app-1a2b.js`);

    expect(await response.text()).toBe('export {};');
    expect(response.headers.get('content-type')).toContain('javascript');
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  });

  it.each([
    '/assets/app-none.js',
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/api/none',
    '/auth/none',
    '/docs/none',
  ])('has nothing at %s', async (address) => {
    const asked = httpRequest(app.url, { path: address, headers: AS_BROWSER }).end();
    const [response] = await once(asked, 'response');
    response.setEncoding('utf8');
    const body = (await response.toArray()).join('');

    expect(response.statusCode).toBe(404);
    expect(JSON.parse(body)).toMatchObject({ status: 404 });
  });

  it('leaves the API, the documentation and programs that ask for data alone', async () => {
    const data = { Accept: 'application/json' };

    expect((await fetch(`${app.url}/api/settings`, { headers: AS_BROWSER })).status).toBe(401);
    expect(await (await fetch(`${app.url}/docs`, { headers: AS_BROWSER })).text()).toContain('swagger');
    expect((await fetch(`${app.url}/conversations/0f3b`, { headers: data })).status).toBe(404);
    expect(
      (await fetch(`${app.url}/conversations/0f3b`, { headers: AS_BROWSER, method: 'POST' })).status,
    ).toBe(404);
  });

  it('is there under the names of the service only', async () => {
    const asked = httpRequest(app.url, { headers: { ...AS_BROWSER, Host: 'evil.example' } }).end();
    const [response] = await once(asked, 'response');
    response.resume();

    expect(response.statusCode).toBe(421);
  });

  it('is not started without a page, and says how to get one', () => {
    expect(() => webAppMiddleware(path.join(folder, 'none'), [], true)).toThrow(
      /WEB_APP_FOLDER: .*none has no index\.html; npm run web installs one/,
    );
  });

  it('does not send hidden files', async () => {
    const response = await fetch(`${app.url}/.hidden`, { headers: AS_BROWSER });

    expect(await response.text()).toContain('<title>App</title>');
  });
});
