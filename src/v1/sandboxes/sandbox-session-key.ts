import { hash } from 'node:crypto';
import { randomBase62 } from '../../common/crypto/random-base62.js';

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
