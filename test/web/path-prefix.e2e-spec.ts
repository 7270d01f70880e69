import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { OwnToolServer } from '../../src/v1/app-conversations/agent-request/own-tool-server.js';
import { remoteServer } from '../support/sample-tool-servers.js';
import { useFiles } from '../support/use-files.js';
import { useTestApp } from '../support/use-test-app.js';

const PUBLIC_URL = 'https://tools.example.com/slipway';
const BUILT = '<meta name="path-prefix" content="" /><script src="./assets/index-1a2b.js"></script>';
const SENT =
  '<meta name="path-prefix" content="/slipway" /><script src="/slipway/console/assets/index-1a2b.js"></script>';
const AS_BROWSER = { headers: { Accept: 'text/html' }, redirect: 'manual' } as const;

describe('a service below a path of its origin', () => {
  const consoleFolder = useFiles({ 'index.html': BUILT, 'assets/index-1a2b.js': 'export {};' });
  const app = useTestApp({ PUBLIC_URL, ALLOWED_HOSTS: 'slipway.internal' }, { consoleFolder });

  describe.each([
    ['keeps', '/slipway'],
    ['takes off', ''],
  ])('behind a proxy that %s it', (_name, prefix) => {
    const get = (address: string, options: RequestInit = {}): Promise<Response> =>
      fetch(`${app.url}${prefix}${address}`, options);

    it.each(['/', '/console/', '/console/conversations/0f3b'])(
      'has the console at %s, with whole addresses',
      async (address) => {
        expect(await (await get(address, AS_BROWSER)).text()).toBe(SENT);
      },
    );

    it('has what the overview names', async () => {
      const overview = (await (await get('/')).json()) as Record<string, string>;

      expect(overview['docs']).toBe('/slipway/docs');
      for (const name of ['docs', 'openapi', 'health', 'console']) {
        const address = overview[name]?.slice('/slipway'.length) ?? '';
        expect([name, (await get(address)).status]).toEqual([name, 200]);
      }
    });

    it('has the pages of the document, which names where clients reach it', async () => {
      const page = await (await get('/docs')).text();
      const script = await (await get('/docs/swagger-ui-init.js')).text();
      const document: unknown = await (await get('/openapi.json')).json();

      expect(page.match(/(?:href|src)="[^"]*"/g)?.every((link) => link.includes('="/slipway/docs/'))).toBe(
        true,
      );
      expect(script).toContain("url: '/slipway/openapi.json'");
      // It is reached by https.
      const SessionCookie = {
        name: '__Host-slipway_session',
        description: expect.stringContaining('`__Host-slipway_session` by https, else `slipway_session`'),
      };
      expect(document).toMatchObject({
        servers: [{ url: PUBLIC_URL }],
        components: { securitySchemes: { SessionCookie } },
      });
    });

    it('leads devices to the console', async () => {
      for (const address of ['/oauth/device', '/oauth/device/verify']) {
        const { status, headers } = await get(`${address}?user_code=ABCD`, AS_BROWSER);
        expect([status, headers.get('location')]).toEqual([303, '/slipway/console/device?user_code=ABCD']);
      }
    });

    it('answers keys, queries and what it does not have as ever', async () => {
      const found = await get('/api/v1/users?limit=1', { headers: app.admin.headers });
      const missing = await get('/slipwayward');

      expect([found.status, missing.status]).toEqual([200, 404]);
      expect(await found.json()).toMatchObject({ items: [{ id: expect.any(String) }] });
    });
  });

  it('answers at the path without a slash', async () => {
    expect(await (await fetch(`${app.url}/slipway`, AS_BROWSER)).text()).toBe(SENT);
  });

  it.each([
    [`${PUBLIC_URL}/mcp`, true],
    [`${PUBLIC_URL}/mcp/`, true],
    ['https://slipway.internal/mcp', true],
    ['https://slipway.internal/slipway/mcp', true],
    ['https://tools.example.com/mcp', false],
    [`${PUBLIC_URL}/mcp/other`, false],
    [`${PUBLIC_URL}mcp`, false],
    ['https://other.example.com/slipway/mcp', false],
  ])('knows its own tool server: %s: %s', (url, isOwn) => {
    const startId = randomUUID();
    const tools = app.app.get(OwnToolServer);
    const given = tools.calledFrom(startId, [remoteServer(url, { apiKey: 'a-key' })]);
    expect(given).toMatchObject([{ apiKey: isOwn ? tools.keyOf(startId) : 'a-key' }]);
  });
});
