import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeWorld } from './fake-world.js';

export interface FakeOAuth {
  clientId: string;
  clientSecret: string;
  /** The one refresh token that is taken. */
  refreshToken: string;
  /** How many tokens it has made. */
  renewals: number;
}

/**
 * Renews tokens of users as each host does. A renewal ends the old token; Bitbucket's refresh tokens last, the others are
 * good for once. GitHub says what it refuses with status 200.
 */
const HOSTS = {
  github: { path: '/login/oauth/access_token', refused: 'bad_refresh_token', status: 200, lasting: false },
  gitlab: { path: '/oauth/token', refused: 'invalid_grant', status: 400, lasting: false },
  bitbucket: { path: '/site/oauth2/access_token', refused: 'invalid_grant', status: 400, lasting: true },
};

export function answerRenewal(
  world: FakeWorld,
  { method, path, body, headers }: FakeRequest,
  kind: keyof typeof HOSTS,
): FakeResponse | null {
  const host = HOSTS[kind];
  const { oauth } = world;
  if (oauth === undefined || method !== 'POST' || path !== host.path) {
    return null;
  }
  const form = new URLSearchParams(body);
  const basic = Buffer.from(headers['authorization']?.replace('Basic ', '') ?? '', 'base64').toString();
  const client = kind === 'bitbucket' ? basic : `${form.get('client_id')}:${form.get('client_secret')}`;
  if (client !== `${oauth.clientId}:${oauth.clientSecret}`) {
    return { status: 401, body: { error: 'invalid_client' } };
  }
  if (form.get('grant_type') !== 'refresh_token' || form.get('refresh_token') !== oauth.refreshToken) {
    return { status: host.status, body: { error: host.refused } };
  }
  oauth.renewals += 1;
  world.token = `${world.token.replace(/-\d+$/, '')}-${oauth.renewals}`;
  oauth.refreshToken = host.lasting ? oauth.refreshToken : `refresh-${oauth.renewals}`;
  return {
    body: {
      access_token: world.token,
      token_type: 'bearer',
      expires_in: kind === 'github' ? 28_800 : 7_200,
      refresh_token: oauth.refreshToken,
    },
  };
}
