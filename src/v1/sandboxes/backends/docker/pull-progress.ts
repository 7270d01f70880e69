import { jsonNumber, jsonText } from '../../../../common/json-access.js';

const MEGABYTE = 1e6;
/** Often enough to see that it goes on over a slow line, seldom enough to be kept in a row. */
const STEP_MEGABYTES = 5;
const DONE = new Set(['Pull complete', 'Already exists']);

interface Layer {
  isDone: boolean;
  loadedBytes: number;
  unpackedBytes: number;
}

/** Makes lines for people of what the engine tells about a pull: Engine API, "Create an image". */
export class PullProgress {
  readonly #layers = new Map<string, Layer>();
  #line = '';

  constructor(private readonly image: string) {}

  /**
   * Takes one event of the engine's.
   *
   * @returns a line, when there is something new to say
   */
  next(event: unknown): string | null {
    this.#note(event);
    const line = this.#describe();
    if (line === this.#line) {
      return null;
    }
    this.#line = line;
    return line;
  }

  #note(event: unknown): void {
    const [id, status] = [jsonText(event, 'id'), jsonText(event, 'status')];
    // The first event has the tag in place of a layer.
    if (id === null || status === null || status.startsWith('Pulling from')) {
      return;
    }
    const layer = this.#layers.get(id) ?? { isDone: false, loadedBytes: 0, unpackedBytes: 0 };
    const bytes = jsonNumber(event, 'progressDetail', 'current') ?? 0;
    this.#layers.set(id, {
      isDone: DONE.has(status),
      loadedBytes: Math.max(layer.loadedBytes, status === 'Downloading' ? bytes : 0),
      unpackedBytes: Math.max(layer.unpackedBytes, status === 'Extracting' ? bytes : 0),
    });
  }

  #describe(): string {
    const layers = [...this.#layers.values()];
    const loaded = megabytes(layers.map(({ loadedBytes }) => loadedBytes));
    const unpacked = megabytes(layers.map(({ unpackedBytes }) => unpackedBytes));
    return [
      `pulling the image ${this.image}`,
      ...(layers.length > 0
        ? [`${layers.filter(({ isDone }) => isDone).length} of ${layers.length} layers`]
        : []),
      ...(loaded > 0 ? [`${loaded} MB loaded`] : []),
      ...(unpacked > 0 ? [`${unpacked} MB unpacked`] : []),
    ].join(', ');
  }
}

function megabytes(bytes: number[]): number {
  const sum = bytes.reduce((total, some) => total + some, 0);
  return Math.floor(sum / MEGABYTE / STEP_MEGABYTES) * STEP_MEGABYTES;
}
