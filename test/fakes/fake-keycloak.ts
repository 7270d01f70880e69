import { type FakeRequest, type FakeResponse, FakeServer } from './fake-server.js';

/** One realm with one identity provider and one user. A test may change it between requests. */
export interface FakeRealm {
  alias: string;
  clientId: string;
  clientSecret: string;
  /** Access tokens the realm accepts. */
  accessTokens: string[];
  /** Refresh and offline tokens the realm accepts. */
  refreshTokens: string[];
  /** "Revoke Refresh Token": a used refresh token is replaced by a new one, and using it again ends the session. */
  rotates: boolean;
  /** What the identity provider's token is right now. */
  forgeToken: string;
  expiresIn?: number;
  /** Version 1 passes on what the identity provider once sent: JSON, or GitHub's form encoding. */
  format: 'json' | 'form';
  /** False for SAML, and where "Store Tokens" is off. */
  storesTokens: boolean;
  linked: boolean;
  /** False when the git host's token has expired, and Keycloak gets no new one for it. */
  renews: boolean;
  /** The user has the role `broker.read-token`. */
  mayReadTokens: boolean;
}

export function sampleRealm(forgeToken: string): FakeRealm {
  return {
    alias: 'corporate-git',
    clientId: 'slipway',
    clientSecret: 'client-secret-of-slipway',
    accessTokens: [keycloakToken('Bearer', 'first')],
    refreshTokens: [keycloakToken('Offline', 'first')],
    rotates: false,
    forgeToken,
    format: 'json',
    storesTokens: true,
    linked: true,
    renews: true,
    mayReadTokens: true,
  };
}

/** Looks like a Keycloak token: three parts, the kind in the claim `typ`. */
export function keycloakToken(typ: 'Bearer' | 'Refresh' | 'Offline', id: string): string {
  return `${encoded({ alg: 'RS256' })}.${encoded({ typ, jti: id })}.c2lnbmF0dXJl`;
}

/**
 * A Keycloak on loopback, both versions of the broker endpoint; the issuer is `{origin}/realms/main`. `gate` is awaited
 * before each answer.
 */
export async function startFakeKeycloak(
  realm: FakeRealm,
  options: { gate?: (request: FakeRequest) => Promise<void> } = {},
): Promise<FakeServer> {
  let exchanges = 0;
  const used = new Set<string>();
  return FakeServer.start(async (request) => {
    await options.gate?.(request);
    const form = new URLSearchParams(request.method === 'POST' ? request.body : '');
    if (request.path === '/realms/main/protocol/openid-connect/token' && request.method === 'POST') {
      exchanges += 1;
      return exchange(realm, form, exchanges, used);
    }
    const alias = /^\/realms\/main\/broker\/([^/]+)\/token$/.exec(request.path)?.[1];
    if (alias !== undefined) {
      return request.method === 'GET' ? brokerV1(realm, request, alias) : brokerV2(realm, form, alias);
    }
    return { status: 404, body: { error: 'Realm does not exist' } };
  });
}

function exchange(
  realm: FakeRealm,
  form: URLSearchParams,
  count: number,
  usedBefore: Set<string>,
): FakeResponse {
  if (!isClient(realm, form)) {
    return wrongClient(realm, form);
  }
  const used = form.get('refresh_token') ?? '';
  if (usedBefore.has(used)) {
    // Keycloak 26.7 also revokes the successor and the access tokens.
    realm.refreshTokens.length = 0;
    realm.accessTokens.length = 0;
    return oauthError(400, 'invalid_grant', 'Maximum allowed refresh token reuse exceeded');
  }
  if (form.get('grant_type') !== 'refresh_token' || !realm.refreshTokens.includes(used)) {
    return oauthError(400, 'invalid_grant', 'Token is not active');
  }
  const accessToken = keycloakToken('Bearer', `exchanged-${count}`);
  realm.accessTokens.push(accessToken);
  if (!realm.rotates) {
    return { body: { access_token: accessToken, expires_in: 300, token_type: 'Bearer' } };
  }
  usedBefore.add(used);
  const refreshToken = keycloakToken('Offline', `rotated-${count}`);
  realm.refreshTokens.splice(realm.refreshTokens.indexOf(used), 1, refreshToken);
  return {
    body: { access_token: accessToken, refresh_token: refreshToken, expires_in: 300, token_type: 'Bearer' },
  };
}

/** Errors as 26.7's version 1 words them. */
function brokerV1(realm: FakeRealm, request: FakeRequest, alias: string): FakeResponse {
  const token = /^Bearer (.+)$/.exec(request.headers['authorization'] ?? '')?.[1] ?? '';
  if (!realm.accessTokens.includes(token)) {
    return refusal(400, 'Invalid token.');
  }
  if (!realm.mayReadTokens) {
    const text = `Client [${realm.clientId}] not authorized to retrieve tokens from identity provider [${realm.alias}].`;
    return refusal(403, text);
  }
  if (alias !== realm.alias) {
    return { status: 502, body: { error: 'Could not obtain token from identity provider.' } };
  }
  if (!realm.storesTokens) {
    return refusal(400, `Identity Provider [${realm.alias}] does not support this operation.`);
  }
  if (!realm.linked) {
    return refusal(400, `User [b1946ac9] is not associated with identity provider [${realm.alias}].`);
  }
  if (!realm.renews) {
    return refusal(502, 'Unable to refresh token');
  }
  if (realm.format === 'json') {
    return { body: storedToken(realm) };
  }
  const form = new URLSearchParams({ access_token: realm.forgeToken, scope: 'repo', token_type: 'bearer' });
  if (realm.expiresIn !== undefined) {
    form.set('expires_in', String(realm.expiresIn));
  }
  return { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: form.toString() };
}

/** Errors as 26.7's version 2 words them. */
function brokerV2(realm: FakeRealm, form: URLSearchParams, alias: string): FakeResponse {
  if (!isClient(realm, form)) {
    return wrongClient(realm, form);
  }
  if (alias !== realm.alias) {
    return oauthError(403, 'invalid_client', 'Client not allowed to retrieve token for the provider');
  }
  if (!realm.accessTokens.includes(form.get('token') ?? '')) {
    return oauthError(400, 'invalid_token', 'Invalid token');
  }
  if (!realm.mayReadTokens) {
    return oauthError(403, 'unauthorized_client', 'Client is not within the token audience');
  }
  if (!realm.linked) {
    return oauthError(400, 'invalid_request', 'User not associated to identity provider');
  }
  if (!realm.renews) {
    return oauthError(400, 'invalid_request', 'Failed to retrieve token from identity provider');
  }
  return { body: storedToken(realm) };
}

function storedToken(realm: FakeRealm) {
  return { access_token: realm.forgeToken, expires_in: realm.expiresIn, token_type: 'Bearer', scope: 'api' };
}

function refusal(status: number, errorMessage: string): FakeResponse {
  return { status, body: { errorMessage } };
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function isClient(realm: FakeRealm, form: URLSearchParams): boolean {
  return form.get('client_id') === realm.clientId && form.get('client_secret') === realm.clientSecret;
}

/** A client that it does not know is an `invalid_client`; a wrong secret of one that it does makes another error. */
function wrongClient(realm: FakeRealm, form: URLSearchParams): FakeResponse {
  const error = form.get('client_id') === realm.clientId ? 'unauthorized_client' : 'invalid_client';
  return oauthError(401, error, 'Invalid client or Invalid client credentials');
}

function oauthError(status: number, error: string, description: string): FakeResponse {
  return { status, body: { error, error_description: description } };
}
