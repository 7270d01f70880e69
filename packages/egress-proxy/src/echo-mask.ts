import { Transform, type TransformCallback } from 'node:stream';
import type { Replacement } from './injection.js';

interface Pattern {
  sent: Buffer;
  shown: Buffer;
  /** Its last four bytes before `keyEnd`, which tell most values apart; null where it has not as many. */
  key: number | null;
  keyEnd: number;
  /** See `bordersOf`; made once it is needed. */
  borders: Uint32Array | null;
}

/** Where a value begins; `isWhole` is false where the data ends within it. */
interface Place {
  at: number;
  isWhole: boolean;
}

const NOWHERE: Place = { at: Infinity, isWhole: false };
const NOTHING = Buffer.alloc(0);

/** Of values that many responses are searched for. */
const knownPatterns = new WeakMap<Replacement, Pattern>();

/** After this, a few bytes that may begin a value go on as they are: the host may be waiting for an answer to them. */
const HOLD_MS = 200;
/** Of a value, what its known prefix (`ghp_`) tells anyway. What is longer is held for as long as it may be one. */
const MAX_RELEASED = 4;
/** A longer beginning is compared again when a quarter more has come: with each byte alone, it takes the time of all of it. */
const LONG_BEGINNING = 256;

/** Puts placeholders back where a response repeats values, also where a value runs over the border of two chunks. */
export class EchoMask {
  private readonly patterns: readonly Pattern[];
  private index: PatternIndex | null = null;
  private readonly replacements: readonly Replacement[];
  private held: Buffer = NOTHING;
  /** What has come since `held` was compared. */
  private unread: Buffer[] = [];
  private unreadBytes = 0;
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
    return this.replaced(Buffer.from(value), true).masked.toString();
  }

  push(chunk: Buffer): Buffer {
    const unreadBytes = this.unreadBytes + chunk.length;
    if (this.held.length > LONG_BEGINNING && unreadBytes < this.held.length / 4) {
      // A copy, as a few bytes may be a part of a large buffer.
      this.unread.push(Buffer.from(chunk));
      this.unreadBytes = unreadBytes;
      return NOTHING;
    }
    return this.next(chunk, false);
  }

  private next(chunk: Buffer, isLast: boolean): Buffer {
    const data = this.held.length === 0 ? chunk : Buffer.concat([this.held, ...this.unread, chunk]);
    const { masked, rest } = this.replaced(data, isLast);
    this.held = Buffer.from(rest);
    this.unread = [];
    this.unreadBytes = 0;
    const skipped = Math.min(this.released, masked.length);
    this.released -= skipped;
    return masked.subarray(skipped);
  }

  /** `rest` may begin a value, also a longer one where another begins. */
  private replaced(data: Buffer, isLast: boolean): { masked: Buffer; rest: Buffer } {
    const parts: Buffer[] = [];
    let from = 0;
    this.index ??= new PatternIndex(this.patterns);
    const found = (candidate: Candidate): Found[] => {
      const place = placeOf(candidate, data, from, isLast);
      return place === NOWHERE ? [] : [{ candidate, ...place }];
    };
    const places = this.index.candidates(data).flatMap(found).toSorted(byPlace);
    for (let [first] = places; first?.isWhole === true; [first] = places) {
      const { at, candidate } = first;
      parts.push(data.subarray(from, at), candidate.pattern.shown);
      from = at + candidate.pattern.sent.length;
      const later = places.findIndex((place) => place.at >= from);
      for (const passed of places.splice(0, later < 0 ? places.length : later)) {
        found(passed.candidate).forEach((place) => insert(places, place));
      }
    }
    const end = places[0]?.at ?? data.length;
    const last = data.subarray(from, end);
    return {
      masked: parts.length === 0 ? last : Buffer.concat([...parts, last]),
      rest: data.subarray(end),
    };
  }

  /** What of the bytes that are held may go on though they may begin a value; they still count as its beginning. */
  release(): Buffer {
    const masked = this.unreadBytes === 0 ? NOTHING : this.next(NOTHING, false);
    const isFew = this.held.length <= MAX_RELEASED;
    const released = isFew ? this.held.subarray(this.released) : NOTHING;
    this.released += released.length;
    return Buffer.concat([masked, released]);
  }

  /** What was held back as the possible beginning of a value. */
  flush(): Buffer {
    return this.next(NOTHING, true);
  }

  get heldLength(): number {
    return this.held.length;
  }
}

function patternOf(replacement: Replacement): Pattern {
  const { sent, shown } = replacement;
  const known = knownPatterns.get(replacement);
  const pattern = known ?? newPattern(Buffer.from(sent), Buffer.from(shown));
  knownPatterns.set(replacement, pattern);
  return pattern;
}

/** Further in than the prefixes that tokens of a kind share, also where they are encoded. */
const MAX_KEY_END = 24;
const KEY_BYTES = 4;

function newPattern(sent: Buffer, shown: Buffer): Pattern {
  const keyEnd = Math.min(sent.length, MAX_KEY_END);
  const key = keyEnd < KEY_BYTES ? null : sent.readInt32BE(keyEnd - KEY_BYTES);
  return { sent, shown, key, keyEnd, borders: null };
}

const SLOT_BITS = 14;

/** A place in a table of `SLOT_BITS`: the upper bits of a product depend on all bits of the key. */
function slotOf(key: number): number {
  return Math.imul(key, 0x9e37_79b1) >>> (32 - SLOT_BITS);
}

/** A value that may be in some data, and where it may begin there. */
interface Candidate {
  pattern: Pattern;
  /** Of values that begin alike, the first is tried first. */
  order: number;
  /** Where its key ends. */
  keys: readonly number[];
  /** Where it may begin so near to the end that its key is not there. */
  tails: readonly number[];
  /** How many of both were tried. */
  tried: number;
}

/** Finds in one pass which of many values may be in some data, as a search for each takes too long. */
class PatternIndex {
  private readonly slots = new Uint8Array(2 ** SLOT_BITS);
  private readonly keys: ReadonlySet<number | null>;
  private readonly byFirst: ReadonlyMap<number | undefined, readonly Pattern[]>;

  constructor(private readonly patterns: readonly Pattern[]) {
    this.keys = new Set(patterns.map(({ key }) => key));
    this.byFirst = Map.groupBy(patterns, ({ sent }) => sent[0]);
    patterns.forEach(({ key }) => (this.slots[slotOf(key ?? 0)] = 1));
  }

  /** In their order. */
  candidates(data: Buffer): Candidate[] {
    const keys = new Map<number | null, number[]>();
    let key = 0;
    for (let at = 0; at < data.length; at += 1) {
      key = (key << 8) | (data[at] ?? 0);
      if (this.slots[slotOf(key)] === 1 && this.keys.has(key)) {
        keys.set(key, keys.get(key) ?? []);
        keys.get(key)?.push(at + 1);
      }
    }
    const tails = this.tails(data);
    if (keys.size === 0 && tails.size === 0 && !this.keys.has(null)) {
      return [];
    }
    return this.patterns
      .map((pattern, order) => ({
        pattern,
        order,
        keys: keys.get(pattern.key) ?? [],
        tails: tails.get(pattern) ?? [],
        tried: 0,
      }))
      .filter(({ pattern, ...each }) => pattern.key === null || each.keys.length + each.tails.length > 0);
  }

  private tails(data: Buffer): ReadonlyMap<Pattern, number[]> {
    const tails = new Map<Pattern, number[]>();
    for (let at = Math.max(0, data.length - MAX_KEY_END + 1); at < data.length; at += 1) {
      for (const pattern of this.byFirst.get(data[at]) ?? []) {
        if (data.length - at < pattern.keyEnd && placeAt(pattern.sent, data, at) !== null) {
          tails.set(pattern, tails.get(pattern) ?? []);
          tails.get(pattern)?.push(at);
        }
      }
    }
    return tails;
  }
}

interface Found extends Place {
  candidate: Candidate;
}

/** The first of the places; at the same one, what may become a longer value. */
function byPlace(one: Found, other: Found): number {
  return (
    one.at - other.at ||
    Number(one.isWhole) - Number(other.isWhole) ||
    one.candidate.order - other.candidate.order
  );
}

/** Into places in their order. */
function insert(places: Found[], place: Found): void {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const isBefore = byPlace(places[middle] ?? place, place) < 0;
    [low, high] = isBefore ? [middle + 1, high] : [low, middle];
  }
  places.splice(low, 0, place);
}

/** Where a value is more often begun than that, a table is faster than comparisons. */
const FEW = 16;

/** @param isLast what the data only begins is no value */
function placeOf(candidate: Candidate, data: Buffer, from: number, isLast: boolean): Place {
  const place = firstPlace(candidate, data, from);
  return isLast && !place.isWhole ? NOWHERE : place;
}

function firstPlace(candidate: Candidate, data: Buffer, from: number): Place {
  const { pattern, keys, tails } = candidate;
  const { sent, keyEnd } = pattern;
  if (pattern.key === null) {
    return placeByTable(pattern, data, from);
  }
  for (let compared = 0; candidate.tried < keys.length + tails.length; candidate.tried += 1) {
    const key = keys[candidate.tried];
    const at = key === undefined ? (tails[candidate.tried - keys.length] ?? data.length) : key - keyEnd;
    if (at < from) {
      continue;
    }
    const place = compared === FEW ? placeByTable(pattern, data, at) : placeAt(sent, data, at);
    if (place !== null) {
      return place;
    }
    compared += 1;
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
function placeByTable(pattern: Pattern, data: Buffer, from: number): Place {
  const { sent } = pattern;
  const borders = (pattern.borders ??= bordersOf(sent));
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
