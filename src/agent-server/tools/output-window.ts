import { StringDecoder } from 'node:string_decoder';
import { joinEnds, MAX_TOOL_TEXT } from './clip-text.js';

/** Takes the output of a command of any length and keeps its beginning and its end. */
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

  /** What was kept. */
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
    // Twice the limit before it is cut: a cut per chunk would copy the end each time.
    if (this.#tail.length > 2 * this.#tailLimit) {
      this.#trim();
    }
  }

  #trim(): void {
    this.#missing += this.#tail.length - this.#tailLimit;
    this.#tail = this.#tail.slice(this.#tail.length - this.#tailLimit);
  }
}
