import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import { parseForm } from '@slipway/common/requests/json-body.js';
import type { ProviderErrorCode } from '../git-provider.js';
import { object, requiredText, text as optionalText } from '../response-schema.js';

/** Characters that are valid in an Authorization header. */
const headerToken = z.string().regex(/^[\x21-\x7e]+$/);

const claimsSchema = object({ typ: optionalText });

const keycloakTokensSchema = z.object({ access_token: headerToken, refresh_token: optionalText });

/** The git server's own format; a form has texts only. */
const gitServerTokenSchema = z.object({
  access_token: headerToken,
  /** Seconds; null if unknown. */
  expires_in: z
    .union([z.number(), requiredText.transform(Number).pipe(z.number())])
    .nullable()
    .catch(null),
});

/** An error of the token endpoint, or of version 2 of the broker endpoint. */
const oauthErrorSchema = object({ error: optionalText });

export interface GitServerToken {
  token: string;
  /** Milliseconds for which it may be kept; 0 when it is about to expire. */
  keepMs: number;
}

export interface KeycloakTokens {
  accessToken: string;
  /** The token that renews this one; null when Keycloak sent none. */
  refreshToken: string | null;
}

const MAX_KEEP_MS = 300_000;
const EXPIRY_MARGIN_MS = 60_000;

/** The statuses of what Keycloak puts in words: version 1 as `errorMessage`, the others as OAuth errors. */
const WORDED: readonly number[] = [400, 403, 404, 502];
// The first match counts.
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/does not support this operation|feature not enabled|has not migrated/i, 'unsupported'],
  [/not associated|not linked|no token stored/i, 'not_linked'],
  [/invalid[_ ]token|invalid_grant/i, 'unauthorized'],
  [/failed to retrieve token|unable to refresh token/i, 'reauth_required'],
];

/** Whether a value must be exchanged first, by its unverified `typ` claim; opaque values go to Keycloak as they are. */
export function isRefreshToken(token: string): boolean {
  const payload = token.split('.')[1] ?? '';
  const { typ } = claimsSchema.parse(parseJson(Buffer.from(payload, 'base64url').toString('utf8')));
  return typ === 'Refresh' || typ === 'Offline';
}

/** Reads the broker's response: JSON, or a form (GitHub's default). Null when it holds no token. */
export function parseGitServerToken(text: string): GitServerToken | null {
  const body = parseJson(text) ?? parseForm(text.trim());
  const { data } = gitServerTokenSchema.safeParse(body);
  return data ? { token: data.access_token, keepMs: keepMs(data.expires_in) } : null;
}

/** Reads the token endpoint's response; null when it holds no access token. */
export function parseKeycloakTokens(text: string): KeycloakTokens | null {
  const { data } = keycloakTokensSchema.safeParse(parseJson(text));
  return data ? { accessToken: data.access_token, refreshToken: data.refresh_token } : null;
}

/** The meaning of a Keycloak failure: `unauthorized` rejects the stored value itself. `text` is never repeated. */
export function mapKeycloakError(status: number, text: string): ProviderErrorCode {
  const { error } = oauthErrorSchema.parse(parseJson(text));
  if (error === 'invalid_client' || (status === 401 && error === 'unauthorized_client')) {
    // The operator's client is unknown, has another secret or lacks a permission; signing in again would not help.
    return 'unavailable';
  }
  const said = WORDED.includes(status) && MESSAGE_CODES.find(([pattern]) => pattern.test(text));
  if (said) {
    return said[1];
  }
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'reauth_required';
    case 429:
      return 'rate_limited';
    default:
      return 'unavailable';
  }
}

function keepMs(expiresInSeconds: number | null): number {
  return expiresInSeconds === null
    ? MAX_KEEP_MS
    : Math.min(MAX_KEEP_MS, Math.max(0, expiresInSeconds * 1000 - EXPIRY_MARGIN_MS));
}
