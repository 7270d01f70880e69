/** One line of what the engine says while it pulls: Engine API, "Create an image". */
export interface PullEvent {
  /** A layer. */
  id: string | null;
  status: string | null;
}

const DONE = new Set(['Pull complete', 'Already exists']);

/** Makes lines for people of what the engine says about the layers of an image. */
export class PullProgress {
  readonly #layers = new Map<string, boolean>();
  #line = '';

  constructor(private readonly image: string) {}

  /** A line, when there is something new to say. */
  next({ id, status }: PullEvent): string | null {
    // The first line has the tag in place of a layer.
    if (id !== null && status !== null && !status.startsWith('Pulling from')) {
      this.#layers.set(id, DONE.has(status));
    }
    const layers = [...this.#layers.values()];
    const progress =
      layers.length === 0 ? '' : `, ${layers.filter(Boolean).length} of ${layers.length} layers`;
    const line = `pulling the image ${this.image}${progress}`;
    if (line === this.#line) {
      return null;
    }
    this.#line = line;
    return line;
  }
}
