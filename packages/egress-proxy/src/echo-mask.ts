import { Transform, type TransformCallback } from 'node:stream';
import type { Replacement } from './injection.js';

interface Pattern {
  sent: Buffer;
  shown: Buffer;
}

/** After this, a few bytes that may begin a value go on as they are: the host may be waiting for an answer to them. */
const HOLD_MS = 200;
/** Of a value, what its known prefix (`ghp_`) tells anyway. What is longer is held for as long as it may be one. */
const MAX_RELEASED = 4;

/** Puts placeholders back where a response repeats values, also where a value runs over the border of two chunks. */
export class EchoMask {
  private readonly patterns: readonly Pattern[];
  private readonly replacements: readonly Replacement[];
  private held: Buffer = Buffer.alloc(0);
  /** Bytes at the beginning of `#held` that have gone on already. */
  private released = 0;

  constructor(replacements: readonly Replacement[]) {
    // Of values that begin alike, the longer one is tried first.
    this.replacements = replacements.toSorted((a, b) => b.sent.length - a.sent.length);
    this.patterns = this.replacements.map(({ sent, shown }) => ({
      sent: Buffer.from(sent),
      shown: Buffer.from(shown),
    }));
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
    return this.replacements.reduce((text, { sent, shown }) => text.replaceAll(sent, () => shown), value);
  }

  push(chunk: Buffer): Buffer {
    const data = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const parts: Buffer[] = [];
    const next = this.patterns.map((pattern) => ({ pattern, at: data.indexOf(pattern.sent) }));
    let from = 0;
    for (;;) {
      const [first] = next.filter(({ at }) => at >= 0).toSorted((a, b) => a.at - b.at);
      if (first === undefined) {
        break;
      }
      parts.push(data.subarray(from, first.at), first.pattern.shown);
      from = first.at + first.pattern.sent.length;
      for (const found of next) {
        if (found.at >= 0 && found.at < from) {
          found.at = data.indexOf(found.pattern.sent, from);
        }
      }
    }
    const end = data.length - this.unfinishedLength(data.subarray(from));
    this.held = Buffer.from(data.subarray(end));
    const masked =
      parts.length === 0 ? data.subarray(0, end) : Buffer.concat([...parts, data.subarray(from, end)]);
    const skipped = Math.min(this.released, masked.length);
    this.released -= skipped;
    return masked.subarray(skipped);
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

  /** How many bytes at the end may begin a value. */
  private unfinishedLength(data: Buffer): number {
    return Math.max(
      0,
      ...this.patterns.map(({ sent }) => {
        const [first = 0] = sent;
        let at = data.indexOf(first, Math.max(0, data.length - sent.length + 1));
        while (at >= 0 && !sent.subarray(0, data.length - at).equals(data.subarray(at))) {
          at = data.indexOf(first, at + 1);
        }
        return at < 0 ? 0 : data.length - at;
      }),
    );
  }
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
