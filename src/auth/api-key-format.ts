import { hash } from 'node:crypto';
import { BASE62, randomBase62 } from '../common/identifiers.js';

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

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
