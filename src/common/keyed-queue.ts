/** Runs what is asked for under one key one after the other. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Answers what the work answers, once everything that was asked for before under this key is done. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    // Whoever asked for it hears of its failure.
    const own = before.then(work, work);
    this.#last.set(key, own);
    try {
      return await own;
    } finally {
      if (this.#last.get(key) === own) {
        this.#last.delete(key);
      }
    }
  }
}
