/** What people want to see of a failure: its end. */
const KEPT = 8_192;

/** The end of a long text that comes in pieces. */
export class OutputTail {
  #text = '';

  add(piece: string): void {
    this.#text += piece;
    if (this.#text.length > 2 * KEPT) {
      this.#text = this.#text.slice(-KEPT);
    }
  }

  get text(): string {
    return this.#text.slice(-KEPT);
  }
}
