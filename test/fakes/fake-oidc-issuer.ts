import { hash, randomUUID } from 'node:crypto';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { type FakeRequest, type FakeResponse, FakeServer } from './fake-server.js';

type Claims = Record<string, unknown>;

interface SigningKey {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  publicJwk: JWK;
}

interface IssuedCode {
  nonce: string | null;
  challenge: string | null;
  redirectUri: string;
}

export const CLIENT_ID = 'slipway';
export const CLIENT_SECRET = 'client-secret-of-slipway';
const DAY = 86_400;

/** Whom the issuer signs in, and what it does. A test may change it between requests. */
export interface IssuerState {
  /** Claims of the ID token of who signs in next. */
  person: Claims;
  /** Claims that only the userinfo endpoint has. */
  userInfo: Claims;
  sid: string;
  /** Valid refresh tokens; null if the issuer gives none. */
  refreshTokens: string[] | null;
  /** Claims of the ID token that comes with a renewal, or null if none comes. */
  renewed: Claims | null;
  /** Changes an ID token before it is sent. */
  tamper: ((token: string) => Promise<string>) | null;
  /** Of people, in place of a JWT. */
  accessToken: string | null;
}

/**
 * An OpenID Connect issuer on loopback that signs in without a question, and checks what a real one checks: client,
 * redirect address, PKCE, that a code is used once.
 */
export class FakeOidcIssuer {
  readonly state: IssuerState = {
    person: {},
    userInfo: {},
    sid: 'sid-1',
    refreshTokens: null,
    renewed: null,
    tamper: null,
    accessToken: null,
  };
  private keys: SigningKey[] = [];
  private readonly codes = new Map<string, IssuedCode>();

  private constructor(readonly server: FakeServer) {}

  static async start(): Promise<FakeOidcIssuer> {
    let self: FakeOidcIssuer;
    const server = await FakeServer.start((request) => self.answer(request));
    self = new FakeOidcIssuer(server);
    await self.rotate('RS256');
    return self;
  }

  get issuer(): string {
    return `${this.server.origin}/realms/main`;
  }

  get environment(): Record<string, string> {
    return {
      OIDC_ISSUER: this.issuer,
      OIDC_AUDIENCE: 'slipway-api',
      OIDC_CLIENT_ID: CLIENT_ID,
      OIDC_CLIENT_SECRET: CLIENT_SECRET,
    };
  }

  /** How often the keys were asked for. */
  get keyRequests(): number {
    return this.server.requests.filter(({ path }) => path.endsWith('/jwks')).length;
  }

  /** Signs with a new key from now on; the others are withdrawn. */
  async rotate(alg: string): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    const kid = randomUUID();
    this.keys = [
      { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } },
    ];
  }

  get currentKey(): SigningKey {
    const [key] = this.keys;
    if (key === undefined) {
      throw new Error('the issuer has no key');
    }
    return key;
  }

  /** An access token for our API that lasts a day, unless the claims say something else. */
  async accessToken(claims: Claims, header: Record<string, unknown> = {}): Promise<string> {
    return this.sign({ aud: 'slipway-api', ...claims }, { typ: 'at+jwt', ...header });
  }

  async logoutToken(claims: Claims): Promise<string> {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    return this.sign({ aud: CLIENT_ID, jti: randomUUID(), events, ...claims }, { typ: 'logout+jwt' });
  }

  async sign(claims: Claims, header: Record<string, unknown> = {}, key = this.currentKey): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ iss: this.issuer, iat: now, exp: now + DAY, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
      .sign(key.privateKey);
  }

  private async answer(request: FakeRequest): Promise<FakeResponse> {
    switch (request.path.replace('/realms/main', '')) {
      case '/.well-known/openid-configuration':
        return {
          body: {
            issuer: this.issuer,
            authorization_endpoint: `${this.issuer}/authorize`,
            token_endpoint: `${this.issuer}/token`,
            userinfo_endpoint: `${this.issuer}/userinfo`,
            jwks_uri: `${this.issuer}/jwks`,
            response_types_supported: ['code'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['RS256', 'ES256', 'EdDSA'],
            code_challenge_methods_supported: ['S256'],
          },
        };
      case '/jwks':
        return { body: { keys: this.keys.map(({ publicJwk }) => publicJwk) } };
      case '/authorize':
        return this.authorize(request.query);
      case '/token':
        return this.token(request);
      case '/userinfo':
        return { body: { sub: this.state.person['sub'], ...this.state.userInfo } };
      default:
        return { status: 404 };
    }
  }

  private authorize(query: URLSearchParams): FakeResponse {
    const redirectUri = query.get('redirect_uri') ?? '';
    if (query.get('client_id') !== CLIENT_ID || query.get('response_type') !== 'code') {
      return { status: 400, body: { error: 'invalid_request' } };
    }
    const code = randomUUID();
    const challenge = query.get('code_challenge_method') === 'S256' ? query.get('code_challenge') : null;
    this.codes.set(code, { nonce: query.get('nonce'), challenge, redirectUri });
    const location = new URL(redirectUri);
    location.searchParams.set('code', code);
    location.searchParams.set('state', query.get('state') ?? '');
    return { status: 302, headers: { location: location.href } };
  }

  private async token({ body, headers }: FakeRequest): Promise<FakeResponse> {
    const credentials = Buffer.from((headers['authorization'] ?? '').replace('Basic ', ''), 'base64');
    if (decodeURIComponent(credentials.toString()) !== `${CLIENT_ID}:${CLIENT_SECRET}`) {
      return { status: 401, body: { error: 'invalid_client' } };
    }
    const form = new URLSearchParams(body);
    return form.get('grant_type') === 'refresh_token'
      ? this.renew(form.get('refresh_token') ?? '')
      : this.redeem(form);
  }

  private async redeem(form: URLSearchParams): Promise<FakeResponse> {
    const code = form.get('code') ?? '';
    const issued = this.codes.get(code);
    this.codes.delete(code);
    const challenge = hash('sha256', form.get('code_verifier') ?? '', 'base64url');
    if (issued?.challenge !== challenge || issued.redirectUri !== form.get('redirect_uri')) {
      return { status: 400, body: { error: 'invalid_grant' } };
    }
    const { person, sid, tamper } = this.state;
    const idToken = await this.sign({
      aud: CLIENT_ID,
      sid,
      ...(issued.nonce !== null && { nonce: issued.nonce }),
      ...person,
    });
    return this.tokens(tamper === null ? idToken : await tamper(idToken));
  }

  /** A refresh token is used once, as with issuers that rotate them. */
  private async renew(token: string): Promise<FakeResponse> {
    const { refreshTokens, renewed } = this.state;
    if (refreshTokens?.includes(token) !== true) {
      return { status: 400, body: { error: 'invalid_grant' } };
    }
    refreshTokens.splice(refreshTokens.indexOf(token), 1);
    return this.tokens(renewed === null ? null : await this.sign({ aud: CLIENT_ID, ...renewed }));
  }

  private async tokens(idToken: string | null): Promise<FakeResponse> {
    const { refreshTokens, person, accessToken } = this.state;
    const refreshToken = refreshTokens === null ? null : `refresh-${randomUUID()}`;
    if (refreshToken !== null) {
      refreshTokens?.push(refreshToken);
    }
    return {
      body: {
        access_token: accessToken ?? (await this.accessToken({ sub: person['sub'] })),
        token_type: 'Bearer',
        expires_in: 300,
        ...(idToken !== null && { id_token: idToken }),
        ...(refreshToken !== null && { refresh_token: refreshToken }),
      },
    };
  }
}
