import { hash, timingSafeEqual } from 'node:crypto';
import { columnById, type EncryptedColumn } from '@slipway/common/secret-cipher.js';
import { randomBase62 } from '@slipway/common/identifiers.js';

/** 22 characters of base62: 130 random bits. */
export function newSandboxId(): string {
  return randomBase62(22);
}

/** Whether a text can be an id. Clients send anything, even characters that PostgreSQL refuses. */
export function isSandboxId(text: string): boolean {
  return /^[0-9A-Za-z]{1,64}$/.test(text);
}

/** The key that clients of an agent server present: 43 characters of base62, 256 random bits. */
export function newSessionKey(): string {
  return randomBase62(43);
}

export function sessionKeyHash(sessionKey: string): Buffer {
  return hash('sha256', sessionKey, 'buffer');
}

/** What an encrypted session key is bound to: copied to another row it does not decrypt. */
export function sessionKeyBinding(sandboxId: string): string {
  return `sandboxes.session_key:${sandboxId}`;
}

export const EGRESS_AUTHORITY = columnById('sandboxes', 'egress_authority');

export const SANDBOX_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  // First, since a claim moves it to the other table as it is.
  { ...EGRESS_AUTHORITY, table: 'warm_sandboxes' },
  EGRESS_AUTHORITY,
  {
    table: 'sandboxes',
    column: 'session_key',
    keyColumns: ['id'],
    binding: ({ id = '' }) => sessionKeyBinding(id),
  },
];

export const TOKEN_PARAMETER = 'slipway_token';

/** Opens only the ports of a sandbox, for as long as it exists. The session key cannot be derived from it. */
export function portToken(sessionKey: string): string {
  return hash('sha256', `ports of the sandbox with the key ${sessionKey}`, 'base64url');
}

/** Whether a client presents the token or the session key. Compares in constant time. */
export function opensPorts(presented: string, sessionKey: string): boolean {
  return [portToken(sessionKey), sessionKey].some((secret) => isKeyOfHash(presented, sessionKeyHash(secret)));
}

/** Compares in constant time. */
export function isKeyOfHash(presented: string, keyHash: Buffer): boolean {
  return timingSafeEqual(sessionKeyHash(presented), keyHash);
}
