import type Docker from 'dockerode';
import { jsonNumber, jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { AGENT_SERVER_LABEL } from './container.js';
import { engineFailure, withDeadline, nullOnStatus } from './engine.js';

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

/** What is known of an image that the engine has. */
interface FoundImage {
  /** Of its content: another one after each build that changed something. */
  id: string;
  hasAgentServer: boolean;
  /** As `NAME=value`. */
  variables: readonly string[];
}

/** @returns null when the engine does not have it */
export async function findImage(docker: Docker, image: string): Promise<FoundImage | null> {
  try {
    const found = await withDeadline(nullOnStatus([404], docker.getImage(image).inspect()));
    return (
      found && {
        id: found.Id,
        hasAgentServer: Boolean(found.Config.Labels?.[AGENT_SERVER_LABEL]),
        variables: found.Config.Env ?? [],
      }
    );
  } catch (error) {
    throw engineFailure(`the image ${image} cannot be looked at`, error);
  }
}

const NEEDS =
  'It takes a Linux image with glibc 2.28 or newer and libstdc++ (Debian, Ubuntu, Fedora and their like), or one made FROM the image of "npm run image:agent-server".';

/** What a program's last lines say when our Node.js cannot run in an image, and what the image lacks then. */
const SIGNS: [sign: RegExp, lack: (found: string) => string][] = [
  // The file is there; what the kernel does not find is the loader that it names.
  [
    /exec \/opt\/slipway\/bin\/node failed: no such file or directory/i,
    () => 'it has no glibc (Alpine has musl instead)',
  ],
  [/exec \/opt\/slipway\/bin\/node failed: exec format error/i, () => 'it is for another kind of processor'],
  [
    /^\/opt\/slipway\/bin\/node: error while loading shared libraries: ([^\s:]+)/m,
    (library) => `it lacks ${library}`,
  ],
  [
    /^\/opt\/slipway\/bin\/node: .*version `([^\s']+)' not found/m,
    (version) => `its libraries are too old, they lack ${version}`,
  ],
];

/**
 * Why our agent server could not even begin in an image that has none of its own; null when that is not why it ended.
 *
 * @param log the program's last lines
 */
export function explainIncompatibleImage(log: string, image: string): string | null {
  for (const [sign, lack] of SIGNS) {
    const found = sign.exec(log);
    if (found !== null) {
      return `The image ${image} cannot run our agent server: ${lack(found[1] ?? '')}. ${NEEDS}`;
    }
  }
  return null;
}

/** What may name an image: it becomes part of a path of the engine's API, and users may choose it. */
const REFERENCE = /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/;

interface WantedImage {
  image: string;
  /** Made here by a command of ours, so that no registry has it. */
  isOurs: boolean;
}

/**
 * Sees to it that the engine has an image.
 *
 * @param onProgress hears what a pull is doing
 * @throws SandboxBackendError that names the image and says what to do
 */
export async function ensureImage(
  docker: Docker,
  { image, isOurs }: WantedImage,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<FoundImage> {
  if (!REFERENCE.test(image)) {
    throw new SandboxBackendError(`"${image}" cannot be the name of an image`);
  }
  const found = await findImage(docker, image);
  if (found !== null) {
    return found;
  }
  if (isOurs) {
    throw new SandboxBackendError(
      `the engine has no image ${image}: build it with "npm run image:agent-server -- --tag ${image}"`,
    );
  }
  await pull(docker, image, onProgress, signal);
  const pulled = await findImage(docker, image);
  if (pulled === null) {
    throw new SandboxBackendError(`the image ${image} was pulled, and the engine does not have it`);
  }
  return pulled;
}

async function pull(
  docker: Docker,
  image: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const progress = new PullProgress(image);
  try {
    for await (const event of events(await docker.pull(image, { abortSignal: signal }))) {
      const problem = jsonText(event, 'error');
      if (problem !== null) {
        throw new Error(problem);
      }
      const line = progress.next(event);
      if (line !== null) {
        onProgress(line);
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    const failure = engineFailure(`the image ${image} cannot be pulled`, error);
    throw new SandboxBackendError(
      `${failure.message} (is the name right? An image that needs a login is pulled by hand: docker pull ${image})`,
      { cause: error },
    );
  }
}

/** The engine answers with one JSON text a line, and with errors in them when it has begun. */
async function* events(answer: NodeJS.ReadableStream): AsyncGenerator {
  answer.setEncoding('utf8');
  let rest = '';
  for await (const chunk of answer) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.filter((text) => text.trim() !== '')) {
      yield JSON.parse(line);
    }
  }
}
