/** What the shell said at the end of a command. */
export interface CommandEnd {
  exitCode: number;
  workingDir: string;
}

/** Finds the end of a command in the bytes that a shell writes, whichever way they are cut into chunks. */
export class MarkScanner {
  readonly #mark: Buffer;
  #rest: Buffer = Buffer.alloc(0);

  constructor(mark: string) {
    this.#mark = Buffer.from(`\0${mark}\0`);
  }

  /** Output that is certainly none of the mark, and the end once it is complete. */
  scan(chunk: Uint8Array): { output: Uint8Array; end: CommandEnd | null } {
    const bytes = Buffer.concat([this.#rest, chunk]);
    const at = bytes.indexOf(this.#mark);
    if (at === -1) {
      // A beginning of the mark may stand at the end.
      const keep = Math.min(bytes.length, this.#mark.length - 1);
      this.#rest = bytes.subarray(bytes.length - keep);
      return { output: bytes.subarray(0, bytes.length - keep), end: null };
    }
    const [exitCode, workingDir, closed] = bytes
      .subarray(at + this.#mark.length)
      .toString('utf8')
      .split('\0');
    if (exitCode === undefined || workingDir === undefined || closed === undefined) {
      this.#rest = bytes.subarray(at);
      return { output: bytes.subarray(0, at), end: null };
    }
    this.#rest = Buffer.alloc(0);
    return { output: bytes.subarray(0, at), end: { exitCode: Number(exitCode), workingDir } };
  }

  /** What was held back, when no end will come any more. */
  flush(): Uint8Array {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}
