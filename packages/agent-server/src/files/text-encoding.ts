import { isUtf8 } from 'node:buffer';

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252';

export const ENCODING_NAMES: Record<TextEncoding, string> = {
  'utf-8': 'UTF-8',
  'utf-16le': 'UTF-16 (little endian)',
  'utf-16be': 'UTF-16 (big endian)',
  'windows-1252': 'Windows-1252 (Latin-1)',
};

/** Each byte has a character of its own, so that all texts come back as they were. */
const BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const WINDOWS_1252 = new Map(
  Array.from(new TextDecoder('windows-1252').decode(BYTES), (character, byte) => [character, byte]),
);
const CONTROLS = /(?![\t\n\f\r\u007F-\u009F])\p{Cc}/u;
/** Bytes that are looked at for the zeros of UTF-16 without its mark. */
const SAMPLE = 1_024;

/** Keeps the byte order mark, if there is one; returns null if the bytes are no text. */
export function decodeText(bytes: Uint8Array): { text: string; encoding: TextEncoding } | null {
  const encoding = encodingOf(bytes);
  if (encoding === null) {
    return null;
  }
  try {
    const text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
    const isText = encoding === 'utf-8' || !CONTROLS.test(text);
    return isText ? { text, encoding } : null;
  } catch {
    return null;
  }
}

/** Returns null if the encoding lacks one of the characters. */
export function encodeText(text: string, encoding: TextEncoding): Buffer | null {
  if (encoding === 'windows-1252') {
    const codes = Array.from(text, (character) => WINDOWS_1252.get(character) ?? -1);
    return codes.includes(-1) ? null : Buffer.from(codes);
  }
  const bytes = Buffer.from(text, encoding === 'utf-8' ? 'utf8' : 'utf16le');
  return encoding === 'utf-16be' ? bytes.swap16() : bytes;
}

/** The first character that an encoding does not have. */
export function lackingCharacter(text: string, encoding: TextEncoding): string | undefined {
  return Array.from(text).find((character) => encodeText(character, encoding) === null);
}

function encodingOf(bytes: Uint8Array): TextEncoding | null {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) {
    return 'utf-16le';
  }
  if (first === 0xfe && second === 0xff) {
    return 'utf-16be';
  }
  if (!bytes.includes(0)) {
    return isUtf8(bytes) ? 'utf-8' : 'windows-1252';
  }
  const zeros = [0, 0];
  bytes.subarray(0, SAMPLE).forEach((byte, index) => {
    zeros[index % 2] = (zeros[index % 2] ?? 0) + (byte === 0 ? 1 : 0);
  });
  const [even = 0, odd = 0] = zeros;
  const many = Math.min(bytes.length, SAMPLE) / 4;
  return even === 0 && odd > many ? 'utf-16le' : odd === 0 && even > many ? 'utf-16be' : null;
}
