import { StringDecoder } from 'node:string_decoder';

/** Longest text that a tool shows the model. */
export const MAX_TOOL_TEXT = 30_000;

/** The note that replaces the middle of a clipped text, as a capturing group so that `split` keeps it. */
export const CUT_MARK = /(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)/;

/** Keeps the beginning and the end of a text and says how much is missing between them. */
export function clipText(text: string, limit: number = MAX_TOOL_TEXT): string {
  if (text.length <= limit) {
    return text;
  }
  const head = Math.ceil(limit / 2);
  return joinEnds(text.slice(0, head), text.slice(text.length - (limit - head)), text.length - limit);
}

/** Collects the output of a command, however long it is, and keeps its beginning and its end. */
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

  /** What was kept, with a note where the middle is missing. */
  text(): string {
    const head = this.#head;
    if (this.#tail.length > this.#tailLimit) {
      this.#trim();
    }
    return this.#missing === 0 ? head + this.#tail : joinEnds(head, this.#tail, this.#missing);
  }

  #add(text: string): void {
    const room = this.#headLimit - this.#head.length;
    this.#head += text.slice(0, room);
    this.#tail += text.slice(room);
    // Trimmed only at twice the limit: trimming with each chunk would copy the tail each time.
    if (this.#tail.length > 2 * this.#tailLimit) {
      this.#trim();
    }
  }

  #trim(): void {
    this.#missing += this.#tail.length - this.#tailLimit;
    this.#tail = this.#tail.slice(this.#tail.length - this.#tailLimit);
  }
}

/** @param missing number of characters between the two */
function joinEnds(head: string, tail: string, missing: number): string {
  return `${head}\n[... ${missing} characters left out ...]\n${tail}`;
}
