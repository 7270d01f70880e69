import type { SecretMasker } from '../secret-masker.js';

/** Output that is worth keeping, per command; the rest is counted, not kept. */
const MAX_CHARACTERS = 4_000_000;
const FULL = 64_000;

type Stream = 'stdout' | 'stderr';

/** A piece of output, ready to be written. */
export interface OutputPiece {
  stdout: string | null;
  stderr: string | null;
}

/** Gathers a command's output and hands it out in pieces, masked also where a secret spans two of them. */
export class OutputBuffer {
  readonly #masker: () => SecretMasker;
  readonly #waiting: Record<Stream, string> = { stdout: '', stderr: '' };
  #kept = 0;
  #dropped = 0;

  constructor(masker: () => SecretMasker) {
    this.#masker = masker;
  }

  /** @returns whether there is enough for a piece */
  add(stream: Stream, text: string): boolean {
    const room = MAX_CHARACTERS - this.#kept;
    const kept = text.slice(0, room);
    this.#waiting[stream] += kept;
    this.#kept += kept.length;
    this.#dropped += text.length - kept.length;
    return kept !== '' && this.#waiting.stdout.length + this.#waiting.stderr.length >= FULL;
  }

  /** What is certain so far; null when that is nothing. What may be the beginning of a secret is kept back. */
  take(): OutputPiece | null {
    const masker = this.#masker();
    const piece = {
      stdout: this.#takeStream('stdout', masker, true),
      stderr: this.#takeStream('stderr', masker, true),
    };
    return piece.stdout === null && piece.stderr === null ? null : piece;
  }

  /** All that is left. */
  takeRest(): OutputPiece {
    const masker = this.#masker();
    // Where the output was cut there may be the beginning of a secret; it is left out too.
    const isCut = this.#dropped > 0;
    if (isCut) {
      this.#waiting.stderr = this.#takeStream('stderr', masker, true) ?? '';
      this.#waiting.stderr += `\n[${this.#dropped} further characters of output were left out]\n`;
    }
    return {
      stdout: this.#takeStream('stdout', masker, isCut),
      stderr: this.#takeStream('stderr', masker, false),
    };
  }

  #takeStream(stream: Stream, masker: SecretMasker, isMoreToCome: boolean): string | null {
    const masked = masker.text(this.#waiting[stream]);
    const end = masked.length - (isMoreToCome ? masker.unfinished(masked) : 0);
    this.#waiting[stream] = masked.slice(end);
    return end === 0 ? null : masked.slice(0, end);
  }
}
