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
