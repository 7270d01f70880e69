import { hash, timingSafeEqual } from 'node:crypto';
import type { EncryptedColumn } from '../../common/crypto/secret-cipher.js';
import { randomBase62 } from '../../common/identifiers.js';

/** An id of a new sandbox: 22 characters of base62, which is 130 bits. */
export function newSandboxId(): string {
  return randomBase62(22);
}

/** Whether a text can be an id. What clients send can be anything, even what PostgreSQL does not take. */
export function isSandboxId(text: string): boolean {
  return /^[0-9A-Za-z]{1,64}$/.test(text);
}

/** A key that clients of a new sandbox's agent server present: 43 characters of base62, which is 256 bits. */
export function newSessionKey(): string {
  return randomBase62(43);
}

/** What a sandbox is found by when its key is presented. */
export function sessionKeyHash(sessionKey: string): Buffer {
  return hash('sha256', sessionKey, 'buffer');
}

/** What an encrypted session key is bound to: copied to another sandbox it does not decrypt. */
export function sessionKeyBinding(sandboxId: string): string {
  return `sandboxes.session_key:${sandboxId}`;
}

/** Where this feature keeps encrypted records. */
export const SANDBOX_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'sandboxes',
    column: 'session_key',
    keyColumns: ['id'],
    binding: ({ id = '' }) => sessionKeyBinding(id),
  },
];

/** Name of the query parameter that opens a port. */
export const TOKEN_PARAMETER = 'slipway_token';

/**
 * What opens the ports of a sandbox, and nothing else of it, for as long as there is the sandbox. Made from its session
 * key, which it does not tell.
 */
export function portToken(sessionKey: string): string {
  return hash('sha256', `ports of the sandbox with the key ${sessionKey}`, 'base64url');
}

/** Whether what a client presents is the token, or the session key itself; takes as long for every wrong one. */
export function opensPorts(presented: string, sessionKey: string): boolean {
  return [portToken(sessionKey), sessionKey].some((secret) =>
    timingSafeEqual(hash('sha256', presented, 'buffer'), hash('sha256', secret, 'buffer')),
  );
}
