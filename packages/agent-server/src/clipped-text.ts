import { StringDecoder } from 'node:string_decoder';
import { textHead, textTail } from '@slipway/common/well-formed-text.js';

export const MAX_TOOL_TEXT = 30_000;

/** The note that replaces the middle of a clipped text, as a capturing group so that `split` keeps it. */
export const CUT_MARK = /(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)/;

export function clipText(text: string, limit: number = MAX_TOOL_TEXT): string {
  if (text.length <= limit) {
    return text;
  }
  const head = textHead(text, Math.ceil(limit / 2));
  const tail = textTail(text, Math.floor(limit / 2));
  return joinEnds(head, tail, text.length - head.length - tail.length);
}

export class OutputWindow {
  readonly #decoder = new StringDecoder('utf8');
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = '';
  #tail = '';
  #missing = 0;

  constructor(limit: number = MAX_TOOL_TEXT) {
    this.#headLimit = Math.ceil(limit / 2);
    this.#tailLimit = limit - this.#headLimit;
  }

  push(bytes: Uint8Array): void {
    this.#add(this.#decoder.write(Buffer.from(bytes)));
  }

  text(): string {
    const head = this.#head;
    if (this.#tail.length > this.#tailLimit) {
      this.#trim();
    }
    return this.#missing === 0 ? head + this.#tail : joinEnds(head, this.#tail, this.#missing);
  }

  #add(text: string): void {
    // What follows a cut belongs to the tail, even if a shorter character would fit before it.
    const isOpen = this.#tail === '' && this.#missing === 0;
    const kept = isOpen ? textHead(text, this.#headLimit - this.#head.length) : '';
    this.#head += kept;
    this.#tail += text.slice(kept.length);
    // Trimmed only at twice the limit: trimming with each chunk would copy the tail each time.
    if (this.#tail.length > 2 * this.#tailLimit) {
      this.#trim();
    }
  }

  #trim(): void {
    const kept = textTail(this.#tail, this.#tailLimit);
    this.#missing += this.#tail.length - kept.length;
    this.#tail = kept;
  }
}

function joinEnds(head: string, tail: string, missing: number): string {
  return `${head}\n[... ${missing} characters left out ...]\n${tail}`;
}

/** The beginning of a stream, of which no more is read than that. */
export async function bytesUpTo(content: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= maxBytes) {
      break;
    }
  }
  return Buffer.concat(chunks).subarray(0, maxBytes);
}

/** @throws Error with the message when a response has more bytes */
export async function boundedText(response: Response, maxBytes: number, tooLarge: string): Promise<string> {
  const bytes = response.body === null ? Buffer.alloc(0) : await bytesUpTo(response.body, maxBytes + 1);
  if (bytes.length > maxBytes) {
    throw new Error(tooLarge);
  }
  return bytes.toString('utf8');
}

/** Splits a stream into lines, and keeps no more of it than the longest line that is allowed. */
export class LineSplitter {
  readonly #maxBytes: number;
  #waiting: Buffer[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in the chunk; null when one is too long. */
  push(chunk: Buffer): string[] | null {
    const lines: string[] = [];
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      lines.push(Buffer.concat([...this.#waiting, chunk.subarray(from, at)]).toString('utf8'));
      this.#waiting = [];
      this.#size = 0;
      from = at + 1;
    }
    this.#waiting.push(chunk.subarray(from));
    this.#size += chunk.length - from;
    return this.#size > this.#maxBytes ? null : lines;
  }
}
