const MAX_CHARACTERS = 20_000_000;

interface Edit {
  path: string;
  /** null: there was no file. */
  before: string | null;
  after: string;
}

/** What edits can be taken back, newest first; the oldest are forgotten when they grow too many. */
export class EditHistory {
  readonly #edits: Edit[] = [];
  #characters = 0;

  add(edit: Edit): void {
    this.#edits.push(edit);
    this.#characters += sizeOf(edit);
    while (this.#characters > MAX_CHARACTERS) {
      const oldest = this.#edits.shift();
      this.#characters -= oldest === undefined ? this.#characters : sizeOf(oldest);
    }
  }

  /** The last edit of a file, null when none is known. */
  last(path: string): Edit | null {
    return this.#edits.findLast((edit) => edit.path === path) ?? null;
  }

  remove(edit: Edit): void {
    const index = this.#edits.indexOf(edit);
    if (index !== -1) {
      this.#edits.splice(index, 1);
      this.#characters -= sizeOf(edit);
    }
  }
}

function sizeOf({ before, after }: Edit): number {
  return (before?.length ?? 0) + after.length;
}
