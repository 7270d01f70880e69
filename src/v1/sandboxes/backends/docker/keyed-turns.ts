/** Runs tasks of the same key one after the other, in the order they came; those of different keys side by side. */
export class KeyedTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Settles as the task does. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = before === undefined ? task() : before.then(task, task);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) {
        this.#last.delete(key);
      }
    }
  }
}
