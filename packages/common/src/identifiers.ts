import { randomBytes } from 'node:crypto';

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/;

/** A UUID, with or without dashes, in PostgreSQL's notation; null for anything else. */
export function parseHexId(text: string): string | null {
  const lower = text.toLowerCase();
  return UUID.test(lower)
    ? lower.replaceAll('-', '').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
    : null;
}

/** Clients see these ids as 32 hexadecimal digits. */
export function toHexId(uuid: string): string {
  return uuid.replaceAll('-', '');
}

export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Uniform: bytes of 248 and more are drawn again. */
export function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) {
        text += BASE62.charAt(byte % 62);
      }
    }
  }
  return text;
}
