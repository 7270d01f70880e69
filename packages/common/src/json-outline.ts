export interface JsonBounds {
  depth: number;
  /** Values and keys; each costs some fifty bytes of memory once parsed, and two bytes in the text. */
  values: number;
  elements?: number;
}

export type JsonBoundsProblem = 'depth' | 'values' | 'elements' | 'syntax';

export class JsonBoundsError extends Error {
  constructor(readonly problem: JsonBoundsProblem) {
    super(`the JSON text was refused: ${problem}`);
    this.name = 'JsonBoundsError';
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/** Follows the brackets of JSON as it arrives, so that depth and number of values are known before it is parsed. */
export class JsonOutline {
  private readonly bounds: JsonBounds;
  private readonly closing: Uint8Array;
  private readonly commas: Uint32Array;
  private readonly maxCommas: number;
  private depth = 0;
  private values = 0;
  private inString = false;
  private isEscaped = false;
  private first: number | null = null;

  constructor(bounds: JsonBounds) {
    this.bounds = bounds;
    this.closing = new Uint8Array(bounds.depth);
    // The first is for commas outside of every bracket, which no valid text has.
    this.commas = new Uint32Array(bounds.depth + 1);
    this.maxCommas = (bounds.elements ?? Infinity) - 1;
  }

  get kind(): 'list' | 'object' | 'other' | null {
    switch (this.first) {
      case null:
        return null;
      case OPEN_LIST:
        return 'list';
      case OPEN_OBJECT:
        return 'object';
      default:
        return 'other';
    }
  }

  get isClosed(): boolean {
    return this.depth === 0 && !this.inString;
  }

  /** @throws JsonBoundsError when the text exceeds a bound */
  push(bytes: Uint8Array): void {
    // Locals and an index: fields and iterators cost several times as much in a loop over each byte.
    let inString = this.inString;
    let isEscaped = this.isEscaped;
    let values = this.values;
    let first = this.first;
    const { length } = bytes;
    for (let index = 0; index < length; index += 1) {
      const byte = bytes[index] ?? 0;
      if (inString) {
        if (isEscaped) {
          isEscaped = false;
        } else if (byte === QUOTE) {
          inString = false;
        } else {
          isEscaped = byte === BACKSLASH;
        }
      } else if (byte > SPACE) {
        first ??= byte;
        switch (byte) {
          case QUOTE:
            inString = true;
            break;
          case COMMA:
            values += 1;
            this.countComma();
            break;
          case COLON:
            values += 1;
            break;
          case OPEN_LIST:
            values += 1;
            this.open(CLOSE_LIST);
            break;
          case OPEN_OBJECT:
            values += 1;
            this.open(CLOSE_OBJECT);
            break;
          case CLOSE_LIST:
          case CLOSE_OBJECT:
            this.close(byte);
        }
      }
    }
    if (values > this.bounds.values) {
      throw new JsonBoundsError('values');
    }
    this.inString = inString;
    this.isEscaped = isEscaped;
    this.values = values;
    this.first = first;
  }

  private open(closing: number): void {
    if (this.depth >= this.bounds.depth) {
      throw new JsonBoundsError('depth');
    }
    this.closing[this.depth] = closing;
    this.depth += 1;
    this.commas[this.depth] = 0;
  }

  private countComma(): void {
    const commas = (this.commas[this.depth] ?? 0) + 1;
    if (commas > this.maxCommas) {
      throw new JsonBoundsError('elements');
    }
    this.commas[this.depth] = commas;
  }

  private close(byte: number): void {
    this.depth -= 1;
    if (this.closing[this.depth] !== byte) {
      throw new JsonBoundsError('syntax');
    }
  }
}
