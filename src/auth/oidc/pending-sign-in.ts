import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { SecretCipher, SecretDecryptionError } from '@slipway/common/secret-cipher.js';
import type { AuthUser } from '../auth.decorators.js';
import { cookieValues, hostCookie, SIGN_IN_COOKIE as COOKIE } from '../sessions/session-cookie.js';
import type { SignInChecks } from './oidc.issuer.js';

const VALID_MS = 600_000;
const BINDING = 'oidc-sign-in';
/** Browsers keep no cookie beyond 4 KB. */
const MAX_PATH = 2_000;

export type LinkedBy = Pick<AuthUser, 'id' | 'keyId'>;

/** What a browser keeps between the beginning and the end of its sign-in; encrypted, as it is worth a session. */
export interface PendingSignIn extends SignInChecks {
  /** Path of our own to go on at. */
  returnTo: string;
  /** The user who is to be linked with the person, and by which key; null for an ordinary sign-in. */
  linkTo: LinkedBy | null;
  expiresAt: number;
}

export function beginSignIn(returnTo: string, linkTo: LinkedBy | null, now: number): PendingSignIn {
  return {
    state: randomText(),
    nonce: randomText(),
    verifier: randomText(),
    returnTo,
    linkTo,
    expiresAt: now + VALID_MS,
  };
}

function randomText(): string {
  return randomBytes(32).toString('base64url');
}

/** Lax: the issuer's redirect brings it back. */
export function signInCookie(cipher: SecretCipher, pending: PendingSignIn, isHttps: boolean): string {
  const attributes = `Path=/; Max-Age=${VALID_MS / 1000}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`;
  return `${hostCookie(COOKIE, isHttps)}=${cipher.encrypt(JSON.stringify(pending), BINDING)}; ${attributes}`;
}

export function endedSignInCookie(isHttps: boolean): string {
  return `${hostCookie(COOKIE, isHttps)}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`;
}

/** Returns null when the browser began no sign-in, or began it too long ago. */
export function pendingSignIn(
  cipher: SecretCipher,
  headers: IncomingHttpHeaders,
  isHttps: boolean,
  now: number,
): PendingSignIn | null {
  const [value, ...others] = cookieValues(headers, hostCookie(COOKIE, isHttps));
  if (value === undefined || others.length > 0) {
    return null;
  }
  try {
    const pending: PendingSignIn = JSON.parse(cipher.decrypt(value, BINDING));
    return now < pending.expiresAt ? pending : null;
  } catch (error) {
    if (error instanceof SecretDecryptionError) {
      return null;
    }
    throw error;
  }
}

/** The path to go on at; anything that could lead to another origin is the console's first page. */
export function ownPath(asked: string | undefined, publicUrl: string): string {
  const prefix = new URL(publicUrl).pathname.replace(/\/$/, '');
  const home = `${prefix}/console/`;
  if (asked === undefined || !asked.startsWith('/') || !URL.canParse(asked, publicUrl)) {
    return home;
  }
  const { origin, pathname, search, hash } = new URL(asked, publicUrl);
  const path = `${pathname}${search}${hash}`;
  // Browsers read `//host` and `/\host` as another host, and take tabs and line breaks out before.
  const isOwn = origin === new URL(publicUrl).origin && pathname.startsWith(`${prefix}/`);
  return isOwn && !pathname.startsWith('//') && path.length <= MAX_PATH ? path : home;
}
