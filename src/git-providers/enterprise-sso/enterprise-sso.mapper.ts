import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import type { ProviderErrorCode } from '../git-provider.js';
import { object, requiredText, text as optionalText } from '../response-schema.js';

/** What may stand in an Authorization header. */
const headerToken = z.string().regex(/^[\x21-\x7e]+$/);

/** The claims of a Keycloak token, as far as its kind goes. */
const claimsSchema = object({ typ: optionalText });

/** The token endpoint's response. */
const keycloakTokensSchema = z.object({ access_token: headerToken, refresh_token: optionalText });

/** The broker endpoint's response, which has the git server's own format: a form has texts only. */
const gitServerTokenSchema = z.object({
  access_token: headerToken,
  /** Seconds; null where they are not told. */
  expires_in: z
    .union([z.number(), requiredText.transform(Number).pipe(z.number())])
    .nullable()
    .catch(null),
});

/** A failure of the token endpoint, or of version 2 of the broker endpoint. */
const oauthErrorSchema = object({ error: optionalText });

/** A token of the git server, as Keycloak stored it when the user signed in there. */
export interface GitServerToken {
  token: string;
  /** How long it may be kept, in milliseconds; 0 where it is about to expire. */
  keepMs: number;
}

/** What a refresh token was exchanged for. */
export interface KeycloakTokens {
  accessToken: string;
  /** Successor of the refresh token; null where Keycloak sent none. */
  refreshToken: string | null;
}

const MAX_KEEP_MS = 300_000;
const EXPIRY_MARGIN_MS = 60_000;

/**
 * Meaning of Keycloak's error texts, in order. Its broker endpoint responds to most failures with 400
 * (`IdentityBrokerService`): version 1 as `errorMessage`, version 2 and the token endpoint as OAuth errors.
 */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/does not support this operation|feature not enabled/i, 'unsupported'],
  [/not associated|not linked|no token stored/i, 'not_linked'],
  [/invalid[_ ]token|invalid_grant/i, 'unauthorized'],
  [/failed to retrieve token/i, 'reauth_required'],
];

/**
 * Whether a stored value must be exchanged for an access token first. Keycloak writes the kind of a token into its
 * `typ` claim. Nothing is verified here: that is Keycloak's part, and an opaque value goes there as it is.
 */
export function isRefreshToken(token: string): boolean {
  const payload = token.split('.')[1] ?? '';
  const { typ } = claimsSchema.parse(parseJson(Buffer.from(payload, 'base64url').toString('utf8')));
  return typ === 'Refresh' || typ === 'Offline';
}

/**
 * Reads the broker endpoint's response: JSON, or form-encoded as GitHub's token endpoint responds by default. Null when
 * there is no token in it.
 */
export function parseGitServerToken(text: string): GitServerToken | null {
  const body = parseJson(text) ?? Object.fromEntries(new URLSearchParams(text.trim()));
  const { data } = gitServerTokenSchema.safeParse(body);
  return data ? { token: data.access_token, keepMs: keepMs(data.expires_in) } : null;
}

/** Reads the token endpoint's response; null when there is no access token in it. */
export function parseKeycloakTokens(text: string): KeycloakTokens | null {
  const { data } = keycloakTokensSchema.safeParse(parseJson(text));
  return data ? { accessToken: data.access_token, refreshToken: data.refresh_token } : null;
}

/**
 * What a failure of Keycloak means to the user. `unauthorized` is a definite rejection of the stored value itself.
 *
 * @param status HTTP status of 400 and above
 * @param text body; searched, never repeated
 */
export function mapKeycloakError(status: number, text: string): ProviderErrorCode {
  if (oauthErrorSchema.parse(parseJson(text)).error === 'invalid_client') {
    // The operator's client is wrong or lacks a permission; signing in again would not help.
    return 'unavailable';
  }
  switch (status) {
    case 400:
      return MESSAGE_CODES.find(([pattern]) => pattern.test(text))?.[1] ?? 'unavailable';
    case 401:
      return 'unauthorized';
    case 403:
      return 'reauth_required';
    case 404:
      return 'not_linked';
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
