import { parseJson } from '@slipway/common/json-access.js';

/** Of a text that is wanted: a model's name, an object of counts. What is longer is none. */
const MAX_TEXT = 8_192;
/** Deeper members are skipped, whatever their names. */
const MAX_NAMED = 3;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

interface Kept {
  path: string;
  depth: number;
  parts: Buffer[];
  length: number;
}

/**
 * Finds a few members of a JSON text as it streams by, and keeps nothing else of it: objects and texts by their path (`message.usage`), the
 * last one of each. Members of a list that is the whole text count as if each stood alone. A text that is no JSON gives anything or nothing.
 */
export class JsonMembers {
  readonly found = new Map<string, string>();
  private depth = 0;
  private isList = false;
  /** The member that is read at each depth; null before its colon. */
  private readonly names: (string | null)[] = [];
  private isInText = false;
  private isEscaped = false;
  /** The text that is read, where it may be a name or is wanted. */
  private text: Buffer[] | null = null;
  private textLength = 0;
  private name: string | null = null;
  private kept: Kept | null = null;
  private isOver = false;

  /** @param isFirstOnly of several texts only the first one is read, as servers do */
  constructor(
    private readonly wanted: ReadonlySet<string>,
    private readonly isFirstOnly = false,
  ) {}

  write(chunk: Buffer): void {
    let from = 0;
    for (let at = 0; at < chunk.length && !(this.isFirstOnly && this.isOver); at += 1) {
      if (this.isInText) {
        const end = this.endOfText(chunk, at);
        this.keepText(chunk.subarray(at, end < 0 ? chunk.length : end));
        if (end < 0) {
          break;
        }
        at = end;
        this.endText();
        continue;
      }
      const byte = chunk[at];
      switch (byte) {
        case QUOTE:
          this.isInText = true;
          this.isEscaped = false;
          this.text = this.kept === null && this.level <= MAX_NAMED ? [] : null;
          this.textLength = 0;
          break;
        case COLON:
          // A point in a name would make a path of it.
          this.setName(this.name?.includes('.') === false ? this.name : '');
          break;
        case COMMA:
          this.setName(null);
          break;
        case OPEN_OBJECT:
        case OPEN_LIST:
          from = this.open(byte, at) ?? from;
          break;
        case CLOSE_OBJECT:
        case CLOSE_LIST:
          this.close(chunk, from, at);
          break;
        default:
      }
    }
    this.keep(chunk.subarray(from));
  }

  /** Of named members: those of a list that is the whole text are one less deep. */
  private get level(): number {
    return this.isList ? this.depth - 1 : this.depth;
  }

  /** Where what is kept begins, if this is that. */
  private open(byte: number, at: number): number | null {
    const path = this.path();
    if (this.depth === 0) {
      this.isList = byte === OPEN_LIST;
    }
    this.depth += 1;
    this.setName(null);
    if (this.kept !== null || byte !== OPEN_OBJECT || path === null || !this.wanted.has(path)) {
      return null;
    }
    this.kept = { path, depth: this.depth, parts: [], length: 0 };
    return at;
  }

  private close(chunk: Buffer, from: number, at: number): void {
    if (this.kept?.depth === this.depth) {
      this.keep(chunk.subarray(from, at + 1));
      const { path, parts } = this.kept ?? { path: null, parts: [] };
      if (path !== null) {
        this.found.set(path, Buffer.concat(parts).toString('utf8'));
      }
      this.kept = null;
    }
    this.depth = Math.max(0, this.depth - 1);
    this.isOver = this.depth === 0;
    this.name = null;
  }

  private keep(part: Buffer): void {
    if (this.kept === null || part.length === 0) {
      return;
    }
    this.kept.parts.push(Buffer.from(part));
    this.kept.length += part.length;
    if (this.kept.length > MAX_TEXT) {
      this.kept = null;
    }
  }

  /** Where members are skipped their names are too: a text may be as deep as it is long. */
  private setName(name: string | null): void {
    if (this.level <= MAX_NAMED) {
      this.names[this.depth] = name;
    }
    this.name = null;
  }

  private path(): string | null {
    if (this.level > MAX_NAMED) {
      return null;
    }
    const names = this.names.slice(this.isList ? 2 : 1, this.depth + 1);
    return names.length > 0 && names.every((name) => name !== null) ? names.join('.') : null;
  }

  /** The position of the quote that ends a text; -1 where that is in a later chunk. */
  private endOfText(chunk: Buffer, start: number): number {
    let from = start;
    for (;;) {
      const quote = chunk.indexOf(QUOTE, from);
      const end = quote < 0 ? chunk.length : quote;
      let first = end;
      while (first > from && chunk[first - 1] === BACKSLASH) {
        first -= 1;
      }
      const isOdd = (end - first) % 2 === 1;
      const isEscaped = first === from && this.isEscaped ? !isOdd : isOdd;
      if (quote < 0) {
        this.isEscaped = isEscaped;
        return -1;
      }
      this.isEscaped = false;
      if (!isEscaped) {
        return quote;
      }
      from = quote + 1;
    }
  }

  private keepText(part: Buffer): void {
    if (this.text === null) {
      return;
    }
    this.textLength += part.length;
    if (this.textLength > MAX_TEXT) {
      this.text = null;
    } else {
      this.text.push(Buffer.from(part));
    }
  }

  private endText(): void {
    this.isInText = false;
    const text = this.text === null ? null : Buffer.concat(this.text).toString('utf8');
    this.text = null;
    const name = this.level <= MAX_NAMED ? (this.names[this.depth] ?? null) : null;
    if (name === null) {
      this.name = text?.includes('\\') ? String(parseJson(`"${text}"`)) : text;
      return;
    }
    const path = this.path();
    if (text !== null && path !== null && this.wanted.has(path)) {
      this.found.set(path, `"${text}"`);
    }
  }
}
