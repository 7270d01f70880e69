import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SignInBrowser } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { KEYCLOAK_HOME, KeycloakServer, PASSWORD } from './support/keycloak-server.js';

const PUBLIC_URL = 'https://slipway.example.com';
const REALM = 'work';
const CLIENT = { client_id: 'slipway', client_secret: 'a-secret-of-the-client-for-the-test' };
/** A program of the company. */
const PROGRAM = { client_id: 'builder', client_secret: 'a-secret-of-the-program-for-the-test' };
const AUDIENCE = 'slipway-api';
const ME = '/api/v1/users/me/identities';

const client = ({ client_id, client_secret }: typeof CLIENT, more: object): object => ({
  clientId: client_id,
  secret: client_secret,
  publicClient: false,
  directAccessGrantsEnabled: true,
  protocolMappers: [
    mapper('groups', 'oidc-group-membership-mapper', { 'claim.name': 'groups', 'full.path': 'false' }),
    mapper('audience', 'oidc-audience-mapper', {
      'included.custom.audience': AUDIENCE,
      'id.token.claim': 'false',
    }),
  ],
  ...more,
});

const mapper = (name: string, protocolMapper: string, config: object): object => ({
  name,
  protocol: 'openid-connect',
  protocolMapper,
  config: { 'id.token.claim': 'true', 'access.token.claim': 'true', ...config },
});

const person = (username: string, groups: string[]): object => ({
  username,
  email: `${username}@example.com`,
  emailVerified: true,
  firstName: username,
  lastName: 'Test',
  enabled: true,
  credentials: [{ type: 'password', value: PASSWORD, temporary: false }],
  groups,
});

/** As docs/operations/sign-in.md says, with Keycloak of today. `npm run test:keycloak` says how to have one. */
(KEYCLOAK_HOME === '' ? describe.skip : describe)('Keycloak', () => {
  let keycloak: KeycloakServer;
  let app: TestApp;

  beforeAll(async () => {
    keycloak = await KeycloakServer.start();
    await keycloak.admin('POST', '', {
      realm: REALM,
      enabled: true,
      groups: [{ name: 'ops' }, { name: 'dev' }, { name: 'guests' }],
      users: [
        person('ada', ['/ops']),
        person('bo', ['/dev']),
        person('cy', ['/dev']),
        person('di', ['/dev']),
        person('guest', ['/guests']),
      ],
      clients: [
        client(CLIENT, { redirectUris: [`${PUBLIC_URL}/auth/callback`] }),
        client(PROGRAM, { serviceAccountsEnabled: true }),
        { clientId: 'elsewhere', secret: 'of-another-client', directAccessGrantsEnabled: true },
      ],
    });
    app = await createTestApp(
      {
        PUBLIC_URL,
        OIDC_ISSUER: keycloak.issuerOf(REALM),
        OIDC_AUDIENCE: AUDIENCE,
        OIDC_CLIENT_ID: CLIENT.client_id,
        OIDC_CLIENT_SECRET: CLIENT.client_secret,
        OIDC_ROLE_MAP: 'ops=admin,dev=member',
        OIDC_DEFAULT_ROLE: 'none',
      },
      undefined,
      { ownClock: true },
    );
    const [{ id }] = (await keycloak.admin('GET', `/${REALM}/clients?clientId=${CLIENT.client_id}`)) as [
      { id: string },
    ];
    await keycloak.admin('PUT', `/${REALM}/clients/${id}`, {
      attributes: {
        'backchannel.logout.url': `${app.url}/auth/backchannel-logout`,
        'backchannel.logout.session.required': 'true',
      },
    });
  });
  afterAll(async () => {
    await app.close();
    await keycloak.stop();
  });

  const idOf = async (username: string): Promise<string> => {
    const [found] = (await keycloak.admin('GET', `/${REALM}/users?exact=true&username=${username}`)) as [
      { id: string },
    ];
    return found.id;
  };
  const signIn = async (username: string): Promise<{ who: SignInBrowser; page: request.Response }> => {
    const who = new SignInBrowser(app.url);
    const { headers } = await who.get('/auth/login');
    const { pathname, search } = await keycloak.signIn(headers['location'] ?? '', username);
    return { who, page: await who.get(pathname + search) };
  };
  const tokenOf = async (username: string, of: Record<string, string> = CLIENT): Promise<string> =>
    await keycloak.token(REALM, {
      ...of,
      grant_type: 'password',
      scope: 'openid',
      username,
      password: PASSWORD,
    });
  const withBearer = (token: string): request.Test =>
    request(app.url).get(ME).set('Authorization', `Bearer ${token}`);

  it('signs people in, with the role of their groups, and no one without', async () => {
    const ada = await signIn('ada');
    const bo = await signIn('bo');
    const guest = await signIn('guest');

    expect(ada.page.status).toBe(200);
    expect(await ada.who.user()).toMatchObject({ email: 'ada@example.com', is_admin: true });
    expect(await bo.who.user()).toMatchObject({ email: 'bo@example.com', is_admin: false });
    expect(guest.page.status).toBe(403);
    expect(await guest.who.user()).toBeNull();
  });

  it('gives people tokens by which their programs call, for our audience alone', async () => {
    await withBearer(await tokenOf('bo')).expect(200);
    const other = { client_id: 'elsewhere', client_secret: 'of-another-client' };
    await withBearer(await tokenOf('bo', other)).expect(401);
  });

  it('goes on with a new key for its signatures', async () => {
    await withBearer(await tokenOf('bo')).expect(200);
    await keycloak.admin('POST', `/${REALM}/components`, {
      name: 'newer',
      providerId: 'rsa-generated',
      providerType: 'org.keycloak.keys.KeyProvider',
      config: {
        priority: ['200'],
        enabled: ['true'],
        active: ['true'],
        algorithm: ['RS256'],
        keySize: ['2048'],
      },
    });
    const token = await tokenOf('bo');
    // An unknown key is asked for every ten seconds at most.
    await until(async () => (await withBearer(token)).status === 200);
  });

  it('has service accounts call, once they have a role', async () => {
    const token = await keycloak.token(REALM, { ...PROGRAM, grant_type: 'client_credentials' });
    const { body } = await withBearer(token).expect(403);
    expect(body.code).toBe('no_role');
    const { body: users } = await request(app.url).get('/api/v1/users').set(app.admin.headers).expect(200);
    const found = users.items.find((user: { kind: string }) => user.kind === 'service');
    expect(found).toMatchObject({ name: PROGRAM.client_id });

    const account = await idOf(`service-account-${PROGRAM.client_id}`);
    const groups = (await keycloak.admin('GET', `/${REALM}/groups`)) as { id: string; name: string }[];
    const dev = groups.find(({ name }) => name === 'dev')?.id ?? '';
    await keycloak.admin('PUT', `/${REALM}/users/${account}/groups/${dev}`);
    const mapped = await keycloak.token(REALM, { ...PROGRAM, grant_type: 'client_credentials' });
    await withBearer(mapped).expect(200);
  });

  it('ends sessions, and the keys made by them, when it signs a person out', async () => {
    const { who } = await signIn('cy');
    const made = await request(app.url)
      .post('/api/v1/api-keys')
      .set({ ...(await who.headers()), Origin: PUBLIC_URL })
      .send({ name: 'of the session' })
      .expect(201);
    await keycloak.admin('POST', `/${REALM}/users/${await idOf('cy')}/logout`);

    await until(async () => (await who.user()) === null);
    await request(app.url).get(ME).set('X-Session-API-Key', made.body.key).expect(401);
  });

  it('ends the session of a person whom it has disabled, at the next renewal', async () => {
    const { who } = await signIn('di');
    expect(await who.user()).not.toBeNull();
    await keycloak.admin('PUT', `/${REALM}/users/${await idOf('di')}`, { enabled: false });
    await app.dataSource.query(
      "UPDATE sessions SET renewed_at = now() - interval '2 hours' WHERE user_id = (SELECT id FROM users WHERE email = 'di@example.com')",
    );

    await until(async () => (await who.user()) === null);
  });

  it('is away: who is signed in goes on, and who is not is told to come again', async () => {
    const { who } = await signIn('bo');
    const token = await tokenOf('bo');
    const late = new SignInBrowser(app.url);
    const { headers } = await late.get('/auth/login');
    const { pathname, search } = await keycloak.signIn(headers['location'] ?? '', 'bo');
    await keycloak.stop();

    expect(await who.user()).not.toBeNull();
    await withBearer(token).expect(200);
    const page = await late.get(pathname + search);
    expect(page.status).toBe(503);
    expect(page.text).toContain('Try again');
  });
});
