import { Transform, type TransformCallback } from 'node:stream';
import type { Replacement } from './injection.js';

interface Pattern {
  sent: Buffer;
  shown: Buffer;
  /** See `bordersOf`; made once it is needed. */
  borders: Uint32Array | null;
}

/** Where a value begins; `isWhole` is false where the data ends within it. */
interface Place {
  at: number;
  isWhole: boolean;
}

const NOWHERE: Place = { at: Infinity, isWhole: false };

/** Of values that many responses are searched for. */
const patterns = new WeakMap<Replacement, Pattern>();

/** After this, a few bytes that may begin a value go on as they are: the host may be waiting for an answer to them. */
const HOLD_MS = 200;
/** Of a value, what its known prefix (`ghp_`) tells anyway. What is longer is held for as long as it may be one. */
const MAX_RELEASED = 4;

/** Puts placeholders back where a response repeats values, also where a value runs over the border of two chunks. */
export class EchoMask {
  private readonly patterns: readonly Pattern[];
  private readonly replacements: readonly Replacement[];
  private held: Buffer = Buffer.alloc(0);
  /** Bytes at the beginning of `held` that have gone on already. */
  private released = 0;

  constructor(replacements: readonly Replacement[]) {
    // Of values that begin alike, the longer one is tried first.
    this.replacements = replacements.toSorted((a, b) => b.sent.length - a.sent.length);
    this.patterns = this.replacements.map(patternOf);
  }

  get isEmpty(): boolean {
    return this.patterns.length === 0;
  }

  /** Whether texts are as long as before, so that lengths which were announced stay right. */
  get keepsLength(): boolean {
    return this.patterns.every(({ sent, shown }) => sent.length === shown.length);
  }

  /** With only what is as long as before. */
  get ofSameLength(): EchoMask {
    return new EchoMask(
      this.replacements.filter(({ sent, shown }) => Buffer.byteLength(sent) === Buffer.byteLength(shown)),
    );
  }

  text(value: string): string {
    const { masked, rest } = this.replaced(Buffer.from(value));
    return Buffer.concat([masked, rest]).toString();
  }

  push(chunk: Buffer): Buffer {
    const { masked, rest } = this.replaced(
      this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]),
    );
    this.held = Buffer.from(rest);
    const skipped = Math.min(this.released, masked.length);
    this.released -= skipped;
    return masked.subarray(skipped);
  }

  /** `rest` may begin a value. */
  private replaced(data: Buffer): { masked: Buffer; rest: Buffer } {
    const parts: Buffer[] = [];
    let from = 0;
    const places = this.patterns.map((pattern) => ({ pattern, ...placeOf(pattern, data, from) }));
    for (;;) {
      const first = places.reduce<(typeof places)[number] | null>(
        (one, other) => (other.isWhole && other.at < (one?.at ?? Infinity) ? other : one),
        null,
      );
      if (first === null) {
        break;
      }
      parts.push(data.subarray(from, first.at), first.pattern.shown);
      from = first.at + first.pattern.sent.length;
      for (const place of places) {
        if (place.at < from) {
          Object.assign(place, placeOf(place.pattern, data, from));
        }
      }
    }
    const end = places.reduce((least, { at }) => Math.min(least, at), data.length);
    const last = data.subarray(from, end);
    return {
      masked: parts.length === 0 ? last : Buffer.concat([...parts, last]),
      rest: data.subarray(end),
    };
  }

  /** What of the bytes that are held may go on though they may begin a value; they still count as its beginning. */
  release(): Buffer {
    const isFew = this.held.length <= MAX_RELEASED;
    const released = isFew ? this.held.subarray(this.released) : Buffer.alloc(0);
    this.released += released.length;
    return released;
  }

  /** What was held back as the possible beginning of a value. */
  flush(): Buffer {
    const held = this.held.subarray(this.released);
    this.held = Buffer.alloc(0);
    this.released = 0;
    return held;
  }

  get heldLength(): number {
    return this.held.length;
  }
}

function patternOf(replacement: Replacement): Pattern {
  const { sent, shown } = replacement;
  const known = patterns.get(replacement);
  const pattern = known ?? { sent: Buffer.from(sent), shown: Buffer.from(shown), borders: null };
  patterns.set(replacement, pattern);
  return pattern;
}

/** Bytes that a value is found by: a search for a whole long value takes its length times that of the data where both repeat themselves. */
const HEAD = 8;
/** Where the head is more often, a table is faster than comparisons. */
const FEW = 16;

function placeOf(pattern: Pattern, data: Buffer, from: number): Place {
  const { sent } = pattern;
  const head = sent.subarray(0, HEAD);
  let at = data.indexOf(head, from);
  for (let tried = 0; at >= 0; tried += 1) {
    if (tried === FEW) {
      return placeByTable(sent, (pattern.borders ??= bordersOf(sent)), data, at);
    }
    const place = placeAt(sent, data, at);
    if (place !== null) {
      return place;
    }
    at = data.indexOf(head, at + 1);
  }
  for (let last = Math.max(from, data.length - head.length + 1); last < data.length; last += 1) {
    const place = placeAt(sent, data, last);
    if (place !== null) {
      return place;
    }
  }
  return NOWHERE;
}

function placeAt(sent: Buffer, data: Buffer, at: number): Place | null {
  const length = Math.min(sent.length, data.length - at);
  return data.compare(sent, 0, length, at, at + length) === 0
    ? { at, isWhole: length === sent.length }
    : null;
}

/** In linear time (Morris and Pratt). */
function placeByTable(sent: Buffer, borders: Uint32Array, data: Buffer, from: number): Place {
  let matched = 0;
  for (let at = from; at < data.length; at += 1) {
    const byte = data[at];
    while (matched > 0 && sent[matched] !== byte) {
      matched = borders[matched - 1] ?? 0;
    }
    matched += sent[matched] === byte ? 1 : 0;
    if (matched === sent.length) {
      return { at: at + 1 - matched, isWhole: true };
    }
  }
  return matched === 0 ? NOWHERE : { at: data.length - matched, isWhole: false };
}

/** For each beginning of a value, the length of its longest end that begins the value too. */
function bordersOf(sent: Buffer): Uint32Array {
  const borders = new Uint32Array(sent.length);
  let matched = 0;
  for (let at = 1; at < sent.length; at += 1) {
    while (matched > 0 && sent[matched] !== sent[at]) {
      matched = borders[matched - 1] ?? 0;
    }
    matched += sent[matched] === sent[at] ? 1 : 0;
    borders[at] = matched;
  }
  return borders;
}

/** The mask as a part of a pipeline. */
export class EchoMaskStream extends Transform {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly mask: EchoMask) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    clearTimeout(this.timer);
    const masked = this.mask.push(chunk);
    if (this.mask.heldLength > 0) {
      this.timer = setTimeout(() => this.push(this.mask.release()), HOLD_MS);
    }
    callback(null, masked);
  }

  override _flush(callback: TransformCallback): void {
    clearTimeout(this.timer);
    callback(null, this.mask.flush());
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.timer);
    callback(error);
  }
}
