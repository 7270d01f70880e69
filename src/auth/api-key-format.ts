import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { BASE62, randomBase62 } from '@slipway/common/identifiers.js';

const ISSUED_KEY = /^slw_([0-9A-Za-z]{8})_([0-9A-Za-z]{43})$/;
const CHOSEN_KEY = /^[\x21-\x7e]{16,512}$/;

export interface ParsedApiKey {
  id: string;
  secretHash: Buffer;
}

/** Makes `slw_<8 base62 characters: id>_<43 base62 characters: 256 bits of secret>`. */
export function generateApiKey(id = randomBase62(8)): string {
  return `slw_${id}_${randomBase62(43)}`;
}

/**
 * Takes a presented key apart; null for anything that cannot be one. A key that an operator chose
 * (`BOOTSTRAP_API_KEY`) gets an id from its hash, so both kinds are found by id.
 */
export function parseApiKey(text: string): ParsedApiKey | null {
  const issued = ISSUED_KEY.exec(text);
  if (issued) {
    const [, id = '', secret = ''] = issued;
    return { id, secretHash: sha256(secret) };
  }
  if (!CHOSEN_KEY.test(text)) {
    return null;
  }
  const secretHash = sha256(text);
  const id = [...sha256(`id:${text}`).subarray(0, 8)].map((byte) => BASE62.charAt(byte % 62)).join('');
  return { id, secretHash };
}

/** As {@link parseApiKey}. @throws Error for a key that no request could present */
export function parsedApiKey(text: string): ParsedApiKey {
  const parsed = parseApiKey(text);
  if (!parsed) {
    throw new Error('the API key has a format that no request could present');
  }
  return parsed;
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** The first of X-Session-API-Key, X-Access-Token and Authorization (Bearer) that is there decides alone. */
export function presentedKey(headers: IncomingHttpHeaders, isOurs?: IsOurToken): string | null {
  const direct = headers['x-session-api-key'] ?? headers['x-access-token'];
  return direct === undefined ? bearerToken(headers, isOurs) : single(direct);
}

/** Reads the user's key on routes where `X-Session-API-Key` may carry a sandbox's key: the other two headers win. */
export function presentedBesideSandboxKey(headers: IncomingHttpHeaders, isOurs?: IsOurToken): string | null {
  const direct = headers['x-access-token'];
  return direct === undefined ? (bearerToken(headers, isOurs) ?? presentedKey(headers)) : single(direct);
}

/** Whether a JSON Web Token is of the issuer that the operator has set. */
export type IsOurToken = (token: string) => boolean;

/**
 * The bearer token (RFC 6750), or null. A JSON Web Token of others is not meant for us: proxies that sign people in add
 * one.
 */
export function bearerToken(headers: IncomingHttpHeaders, isOurs: IsOurToken = () => false): string | null {
  const token = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? null;
  return token !== null && /^eyJ[\w-]*\./.test(token) && !isOurs(token) ? null : token;
}

function single(value: string | string[]): string | null {
  return typeof value === 'string' ? value : null;
}
