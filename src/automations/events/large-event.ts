import { setImmediate } from 'node:timers/promises';
import { MalformedBodyError } from '@slipway/common/requests/json-body.js';

/** Larger members of a large event are dropped: the commits of a push, or the files of a release. */
const MAX_MEMBER_BYTES = 65_536;
/** What an event may have in all. */
const MAX_BYTES = 1_048_576;
/** Looked at in one go: milliseconds. */
const SLICE = 262_144;

const [QUOTE, COMMA, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = Buffer.from('",\\{}[]');
const [PLUS, AMPERSAND, PERCENT] = Buffer.from('+&%');
const PAYLOAD = 'payload=';
/** Value of a hexadecimal digit by its byte; 16 for other bytes. */
const DIGITS = Uint8Array.from({ length: 256 }, (_none, byte) => {
  const place = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return place === -1 ? 16 : place;
});

/** The text of an object without its large members; others get their turn meanwhile. @throws MalformedBodyError */
export async function withoutLargeMembers(text: Buffer): Promise<string> {
  const start = text.indexOf('{');
  if (start === -1 || text.toString('utf8', 0, Math.min(start, SLICE)).trim() !== '') {
    throw new MalformedBodyError('syntax');
  }
  /** Neighbours are one part. */
  const kept: { from: number; to: number }[] = [];
  let [size, depth, from, isString] = [0, 0, start, false];
  const keep = (to: number): void => {
    const length = to - from + 1;
    if (length > MAX_MEMBER_BYTES || size + length > MAX_BYTES) {
      return;
    }
    const last = kept.at(-1);
    size += length;
    if (last?.to === from - 1) {
      last.to = to;
    } else {
      kept.push({ from, to });
    }
  };
  for (let at = start, pause = start + SLICE; at < text.length; at += 1) {
    const byte = text[at] ?? 0;
    if (isString) {
      at += byte === BACKSLASH ? 1 : 0;
      isString = byte !== QUOTE;
    } else if (byte === QUOTE) {
      isString = true;
    } else if (byte === OPEN || byte === OPEN_LIST) {
      depth += 1;
      from = depth === 1 ? at + 1 : from;
    } else if (depth === 1 && (byte === COMMA || byte === CLOSE)) {
      keep(at);
      from = at + 1;
      if (byte === CLOSE) {
        return `{${kept.map((part) => text.toString('utf8', part.from, part.to)).join(',')}}`;
      }
    } else if (byte === CLOSE || byte === CLOSE_LIST) {
      depth -= 1;
    }
    if (at > pause) {
      pause = at + SLICE;
      await setImmediate();
    }
  }
  throw new MalformedBodyError('syntax');
}

/** The field `payload` of a form, which is decoded in its place. @throws MalformedBodyError */
export async function payloadOfForm(form: Buffer): Promise<Buffer> {
  const start = form.indexOf(PAYLOAD);
  if (start !== 0 && form[start - 1] !== AMPERSAND) {
    throw new MalformedBodyError('syntax');
  }
  const next = form.indexOf('&', start);
  const field = form.subarray(start + PAYLOAD.length, next === -1 ? form.length : next);
  let [length, pause] = [0, SLICE];
  for (let at = 0; at < field.length; at += 1) {
    const byte = field[at] ?? 0;
    const high = byte === PERCENT ? (DIGITS[field[at + 1] ?? 0] ?? 16) : 16;
    const low = high < 16 ? (DIGITS[field[at + 2] ?? 0] ?? 16) : 16;
    at += low < 16 ? 2 : 0;
    field[length] = low < 16 ? 16 * high + low : byte === PLUS ? 0x20 : byte;
    length += 1;
    if (at > pause) {
      pause = at + SLICE;
      await setImmediate();
    }
  }
  return field.subarray(0, length);
}
