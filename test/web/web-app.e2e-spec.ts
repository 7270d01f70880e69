import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import path from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { jsonText } from '@slipway/common/json-access.js';
import { webAppMiddleware } from '../../src/web/web-app.middleware.js';
import { createTestApp } from '../support/create-test-app.js';
import { useFiles } from '../support/use-files.js';
import { useTestApp } from '../support/use-test-app.js';

const INLINE = 'window.begun = true;';
const PAGE = `<!DOCTYPE html><html><head><title>App</title></head><body><script>${INLINE}</script></body></html>`;
const CONSOLE = '<html><head><title>Console</title></head></html>';
const AS_BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

function scriptsOf(page: string): string[] {
  return [...page.matchAll(/<script>([^]*?)<\/script>/g)].map(([, text = '']) => text);
}

/** A script as a policy names it. */
function sourceOf(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}

describe('a web application on the origin of the service', () => {
  const folder = useFiles({
    'secret.txt': 'beside the application',
    'build/index.html': PAGE,
    'build/.hidden': 'hidden',
    'build/assets/app-1a2b.js': 'export {};',
    'console/index.html': CONSOLE,
  });
  const WEB_APP_FOLDER = path.join(folder, 'build');
  const app = useTestApp({ WEB_APP_FOLDER }, { consoleFolder: path.join(folder, 'console') });

  const visit = (address: string) => fetch(`${app.url}${address}`, { headers: AS_BROWSER });

  it.each(['/', '/index.html', '/conversations/0f3b', '/settings/mcp?from=home', '/apiary', '/.hidden'])(
    'has its page at %s',
    async (address) => {
      const response = await visit(address);

      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-cache');
      expect(await response.text()).toContain('<title>App</title>');
    },
  );

  it('leaves the console where it is', async () => {
    const response = await visit('/console/');

    expect([response.status, await response.text()]).toEqual([200, CONSOLE]);
    expect((await visit('/console/none.js')).status).toBe(404);
  });

  it('runs no scripts but those of the page, and is framed by nobody else', async () => {
    const response = await visit('/');
    const policy = response.headers.get('content-security-policy') ?? '';
    const scripts = policy.split('; ').find((directive) => directive.startsWith('script-src'));
    const inline = scriptsOf(await response.text()).map(sourceOf);

    expect(inline).toHaveLength(2);
    expect(scripts).toBe(`script-src 'self' 'wasm-unsafe-eval' ${inline.join(' ')}`);
    expect(policy).toContain("frame-ancestors 'self'");
    expect(policy).toContain("connect-src 'self' data: blob: https://registry.npmjs.org http://localhost:* ");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('is sent as it was built where the service listens for others: no script of the service is in it', async () => {
    const shared = await createTestApp({ WEB_APP_FOLDER, HOST: '0.0.0.0' });
    try {
      const response = await fetch(`${shared.url}/`, { headers: AS_BROWSER });

      expect(await response.text()).toBe(PAGE);
      expect(response.headers.get('content-security-policy')).toContain(
        `script-src 'self' 'wasm-unsafe-eval' ${sourceOf(INLINE)}; `,
      );
      const link = `${shared.url}/settings/integrations`;
      const followed = await fetch(link, { headers: AS_BROWSER, redirect: 'manual' });
      expect([followed.status, followed.headers.get('location')]).toEqual([302, '/console/settings']);
    } finally {
      await shared.close();
    }
  });

  describe('its link to the git hosts', () => {
    interface Followed {
      /** Where the browser is in the end. */
      at: string;
      session: string | null;
    }

    /** Runs the scripts of the page as a browser does that has this key stored, and perhaps a session. */
    const follow = async (key: string | null, cookie: string | null = null): Promise<Followed> => {
      const response = await visit('/settings/integrations');
      const opened = Promise.withResolvers<string>();
      let session = cookie;
      const backend = { kind: 'cloud', host: app.url, apiKey: key };
      const stored = new Map(key === null ? [] : [['openhands-backends', JSON.stringify([backend])]]);
      const { origin, pathname } = new URL(response.url);
      const page = {
        location: { origin, pathname, search: '', hash: '', replace: opened.resolve },
        localStorage: { getItem: (name: string) => stored.get(name) ?? null },
        fetch: async (address: string, init: RequestInit = {}) => {
          const headers = new Headers(init.headers);
          if (session !== null && init.credentials !== 'omit') {
            headers.set('Cookie', session);
          }
          const answer = await fetch(`${app.url}${address}`, { ...init, headers });
          session = answer.headers.getSetCookie()[0]?.split(';')[0] ?? session;
          return answer;
        },
      };
      runInNewContext(scriptsOf(await response.text()).join('\n'), { ...page, window: {} });
      return { at: await opened.promise, session };
    };

    const signedIn = async (cookie: string | null): Promise<unknown> => {
      const headers = { Cookie: cookie ?? '' };
      const response = await fetch(`${app.url}/auth/session`, { headers });
      return jsonText(await response.json(), 'user', 'id');
    };

    it("opens the console's page that connects them, as the account of the application", async () => {
      const ada = await app.createUser();
      const { at, session } = await follow(ada.key);

      expect(at).toBe('/console/settings');
      expect(await signedIn(session)).toBe(ada.id);
    });

    it('keeps a session of the same account, and replaces one of another', async () => {
      const [ada, bo] = [await app.createUser(), await app.createUser()];
      const { session } = await follow(ada.key);

      expect((await follow(ada.key, session)).session).toBe(session);
      expect(await signedIn((await follow(bo.key, session)).session)).toBe(bo.id);
    });

    it.each([null, 'slw_not-a-key'])('leaves signing in to the console with the key %j', async (key) => {
      expect(await follow(key)).toEqual({ at: '/console/settings', session: null });
    });

    it('runs the scripts of the service only', async () => {
      const response = await visit('/settings/integrations');
      const digests = scriptsOf(await response.text()).map(sourceOf);

      expect(response.headers.get('content-security-policy')).toContain(
        `script-src 'self' 'wasm-unsafe-eval' ${digests.join(' ')}; `,
      );
    });
  });

  it('is not sent again to a browser that has it', async () => {
    const asked = { ...AS_BROWSER, 'Accept-Encoding': 'gzip, br' };
    const response = await fetch(`${app.url}/`, { headers: asked });
    const headers = { ...asked, 'If-None-Match': response.headers.get('etag') ?? '' };

    expect(response.headers.get('content-encoding')).toBe('br');
    expect((await fetch(`${app.url}/conversations/0f3b`, { headers })).status).toBe(304);
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

    expect((await visit('/api/settings')).status).toBe(401);
    expect(await (await visit('/docs')).text()).toContain('swagger');
    expect((await fetch(`${app.url}/conversations/0f3b`, { headers: data })).status).toBe(404);
    // Clients of tool servers look for a way to sign in, and take anything.
    const metadata = await fetch(`${app.url}/.well-known/oauth-authorization-server`);
    expect([metadata.status, await metadata.json()]).toMatchObject([404, { code: 'not_found' }]);
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
});
