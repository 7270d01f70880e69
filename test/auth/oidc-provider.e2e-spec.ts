import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';
import request from 'supertest';
import { startListening, stopServer } from '../support/start-listening.js';
import { useTestApp } from '../support/use-test-app.js';

const PUBLIC_URL = 'https://slipway.example.com';
const API = 'https://slipway.example.com/api';
const CLIENT = { client_id: 'slipway', client_secret: 'a-secret-of-the-client-for-the-test' };

/** An OpenID provider by a certified library, which signs in without a question. */
async function startProvider(): Promise<{ server: Server; issuer: string }> {
  const server = createServer();
  const issuer = `http://127.0.0.1:${await startListening(server)}`;
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  // It says that it keeps all in memory.
  const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'first' }] },
    clients: [
      {
        ...CLIENT,
        grant_types: ['authorization_code', 'client_credentials'],
        redirect_uris: [`${PUBLIC_URL}/auth/callback`],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'offline_access', 'groups'],
    ttl: {
      AccessToken: 600,
      ClientCredentials: 600,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    pkce: { required: () => true },
    cookies: { keys: ['a-key-of-cookies'] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({
        sub,
        name: 'Ada',
        email: `${sub}@example.com`,
        email_verified: true,
        groups: ['ops'],
      }),
    }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => API,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'api',
          audience: API,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: async ({ oidc }) => {
      const { session, client, provider: own } = oidc;
      const grant = new own.Grant({ accountId: session?.accountId ?? '', clientId: client?.clientId ?? '' });
      grant.addOIDCScope('openid profile email groups');
      grant.addResourceScope(API, 'api');
      await grant.save();
      return grant;
    },
  });
  warn.mockRestore();
  const callback = provider.callback();
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> =>
    incoming.url?.startsWith('/interaction/') === true
      ? provider.interactionFinished(incoming, response, { login: { accountId: 'ada' } })
      : callback(incoming, response);
  server.on('request', (incoming, response) => {
    answer(incoming, response).catch((error: unknown) => response.writeHead(599).end(String(error)));
  });
  return { server, issuer };
}

describe('an OpenID provider', () => {
  let provider: Awaited<ReturnType<typeof startProvider>>;

  const app = useTestApp(async () => {
    provider = await startProvider();
    return {
      PUBLIC_URL,
      OIDC_ISSUER: provider.issuer,
      OIDC_AUDIENCE: API,
      OIDC_CLIENT_ID: CLIENT.client_id,
      OIDC_CLIENT_SECRET: CLIENT.client_secret,
      OIDC_SCOPES: 'openid profile email groups',
      OIDC_ROLE_MAP: 'ops=admin',
    };
  });
  afterAll(() => stopServer(provider.server));

  const token = async (form: Record<string, string>): Promise<string> => {
    const response = await fetch(`${provider.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(Object.values(CLIENT).join(':'))}` },
      body: new URLSearchParams(form),
    });
    return ((await response.json()) as { access_token: string }).access_token;
  };

  /** A browser at the provider, as far as the address of the callback. */
  const through = async (address: string): Promise<URL> => {
    const cookies = new Map<string, string>();
    for (let next = new URL(address); ;) {
      if (next.origin !== provider.issuer) {
        return next;
      }
      const { headers } = await fetch(next, {
        redirect: 'manual',
        headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
      });
      for (const line of headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        cookies.set(name, value);
      }
      const location = headers.get('location');
      expect(location).not.toBeNull();
      next = new URL(location ?? '', next);
    }
  };

  it('signs people in, with the role of their groups', async () => {
    const login = await app.as().get('/auth/login').redirects(0);
    const { pathname, search } = await through(login.headers['location'] ?? '');
    const [begun = ''] = [login.headers['set-cookie'] ?? []].flat();
    const page = await request(app.url)
      .get(pathname + search)
      .set('Cookie', begun.split(';')[0] ?? '');

    expect(page.status).toBe(200);
    const cookie = [page.headers['set-cookie'] ?? []]
      .flat()
      .find((line) => line.startsWith('__Host-slipway_session='));
    const { body } = await request(app.url)
      .get('/auth/session')
      .set('Cookie', cookie?.split(';')[0] ?? '');
    expect(body.user).toMatchObject({ email: 'ada@example.com', name: 'Ada', is_admin: true });
  });

  it('lets programs call by client credentials, once they have a role', async () => {
    const bearer = await token({ grant_type: 'client_credentials', resource: API, scope: 'api' });
    const ask = (): request.Test =>
      request(app.url).get('/api/v1/users/me/identities').set('Authorization', `Bearer ${bearer}`);
    const { body } = await ask().expect(403);
    expect(body.code).toBe('no_role');
    const { body: found } = await app.as(app.admin).get('/api/v1/users');
    const { id } = found.items.find((user: { name: string }) => user.name === 'slipway');
    await app.as(app.admin).patch(`/api/v1/users/${id}`, { is_admin: true }).expect(200);

    await ask().expect(200);
  });
});
