/** The shortest text whose repetition counts, and how often it has to stand there in a row. */
const REPEATED = 200;
const TIMES = 8;
/** The longest one. */
const MAX_PERIOD = 2_000;
const SHOWN_EVERY_MS = 3_000;

/** What can be said of an answer while it is being written: whether it goes in circles, and how long it is. */
export class AnswerWatch {
  text = '';
  #checked = 0;
  #shownAt = Number.NEGATIVE_INFINITY;
  readonly #lengths: number[] = [];

  /** @returns whether the text repeats itself since this piece */
  add(piece: string): boolean {
    this.text += piece;
    if (this.text.length - this.#checked < REPEATED) {
      return false;
    }
    this.#checked = this.text.length;
    return repeatsItself(this.text);
  }

  /** Whether it is time to show the length again. */
  isDue(now: number): boolean {
    if (now - this.#shownAt < SHOWN_EVERY_MS) {
      return false;
    }
    this.#shownAt = now;
    this.#lengths.push(this.text.length);
    return true;
  }

  /** Grows with each length, because clients are sent what is added. */
  get note(): string {
    const lengths = this.#lengths.map((length) => length.toLocaleString('en')).join(' … ');
    return lengths === '' ? '' : `Held back until it is complete. Characters so far: ${lengths}`;
  }
}

function repeatsItself(text: string): boolean {
  const end = text.slice(-REPEATED);
  const window = text.slice(-(MAX_PERIOD + REPEATED));
  const before = window.lastIndexOf(end, window.length - REPEATED - 1);
  const period = window.length - REPEATED - before;
  const length = TIMES * Math.max(period, REPEATED);
  if (before === -1 || text.length < length) {
    return false;
  }
  const last = text.slice(-length);
  return last.slice(period) === last.slice(0, -period);
}
