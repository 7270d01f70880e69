import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { randomBase62 } from '@slipway/common/identifiers.js';

/** Pages of sandboxes may share the host, and with it the cookies: every proxy strips this one. */
export const SESSION_COOKIE = 'slipway_session';
/** Cookie of a sign-in that has begun; it is as sensitive as a session. */
export const SIGN_IN_COOKIE = 'slipway_login';
const OWN_COOKIES = [SESSION_COOKIE, SIGN_IN_COOKIE].flatMap((name) => [name, hostCookie(name, true)]);
const VALUE = /^(ses_[0-9A-Za-z]{8})_([0-9A-Za-z]{43})$/;
/** Milliseconds after its begin. */
export const SESSION_MAX_MS = 7 * 86_400_000;

export interface SessionToken {
  /** Not secret: the audit names it. */
  id: string;
  secretHash: Buffer;
  /** What changes by the session repeat in `X-CSRF-Token`: nothing that a page of another origin could learn. */
  csrfToken: string;
}

/** Makes `ses_<8 base62 characters: id>_<43 base62 characters: 256 bits of secret>`. */
export function generateSession(): SessionToken & { value: string } {
  const [id, secret] = [`ses_${randomBase62(8)}`, randomBase62(43)];
  return { value: `${id}_${secret}`, ...tokenOf(id, secret) };
}

export function parseSession(value: string): SessionToken | null {
  const [, id, secret] = VALUE.exec(value) ?? [];
  return id === undefined || secret === undefined ? null : tokenOf(id, secret);
}

function tokenOf(id: string, secret: string): SessionToken {
  const csrfToken = hash('sha256', `csrf:${secret}`, 'base64url');
  return { id, secretHash: hash('sha256', secret, 'buffer'), csrfToken };
}

export function isSessionId(id: string): boolean {
  return id.startsWith('ses_');
}

/**
 * The session of a request. Two different cookies of the name mean none: pages at other ports or subdomains can add a
 * cookie beside ours, and which of them the browser sends first is their choice.
 */
export function presentedSession(headers: IncomingHttpHeaders, isHttps: boolean): SessionToken | null {
  const [value, ...others] = cookieValues(headers, hostCookie(SESSION_COOKIE, isHttps));
  return value === undefined || others.length > 0 ? null : parseSession(value);
}

/** Different values of cookies with the name. */
export function cookieValues({ cookie }: IncomingHttpHeaders, name: string): string[] {
  const pairs = cookiesOf(cookie).filter((pair) => nameOf(pair) === name);
  return [...new Set(pairs.map((pair) => pair.slice(pair.indexOf('=') + 1)))];
}

export function hasSessionCookie({ cookie }: IncomingHttpHeaders): boolean {
  return cookiesOf(cookie).some((pair) => nameOf(pair).endsWith(SESSION_COOKIE));
}

function cookiesOf(header: string | undefined): string[] {
  return (header ?? '').split(/; */).filter((pair) => pair !== '');
}

/** Whether a pair of `Cookie`, or a whole `Set-Cookie`, is about a cookie of ours, under either name. */
export function isSessionCookie(pair: string): boolean {
  return OWN_COOKIES.includes(nameOf(pair));
}

/** Browsers let no other host set one by that name, siblings and parent domains neither. They take it by https alone. */
export function hostCookie(name: string, isHttps: boolean): string {
  return isHttps ? `__Host-${name}` : name;
}

/** Browsers send a cookie without a name (`=slipway_session=…`) as its bare value. */
function nameOf(pair: string): string {
  return /^[\s=]*([^\s=;]*)/.exec(pair)?.[1] ?? '';
}

/** @param value of the cookie; null ends it */
export function sessionSetCookie(value: string | null, isHttps: boolean): string {
  const age = value === null ? 0 : SESSION_MAX_MS / 1000;
  const attributes = `Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${isHttps ? '; Secure' : ''}`;
  return `${hostCookie(SESSION_COOKIE, isHttps)}=${value ?? ''}; ${attributes}`;
}

export function isCsrfToken(presented: string | string[] | undefined, { csrfToken }: SessionToken): boolean {
  const [given, expected] = [Buffer.from(String(presented ?? '')), Buffer.from(csrfToken)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
