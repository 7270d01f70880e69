import type Docker from 'dockerode';
import { jsonLines, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { SandboxBackendError, SandboxBackendUnavailableError } from '../sandbox-backend.js';
import { AGENT_SERVER_LABEL } from './container.js';
import { callEngine, engineFailure, nullOnStatus } from './engine.js';

/** Users choose the image, and its name becomes part of a path of the engine's API. */
const IMAGE_REFERENCE = /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/;
const RELAY_IMAGE_LABEL = 'slipway.relay';
const MEGABYTE = 1e6;
/** Shows progress over a slow line without a database write for every event. */
const STEP_MEGABYTES = 5;
const DONE_STATUSES = new Set(['Pull complete', 'Already exists']);

interface RequestedImage {
  image: string;
  isOurs: boolean;
}

export interface FoundImage {
  /** A hash of the content: every build that changes something has another one. */
  id: string;
  hasAgentServer: boolean;
  /** Whether it was built with what leads to egress proxies. */
  hasRelay: boolean;
  variables: readonly string[];
}

/** @throws SandboxBackendError that names the image and says what to do */
export async function ensureImage(
  docker: Docker,
  { image, isOurs }: RequestedImage,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<FoundImage> {
  if (!IMAGE_REFERENCE.test(image)) {
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

export async function findImage(docker: Docker, image: string): Promise<FoundImage | null> {
  const found = await callEngine(`the image ${image} cannot be inspected`, () =>
    nullOnStatus([404], docker.getImage(image).inspect()),
  );
  return (
    found && {
      id: found.Id,
      hasAgentServer: Boolean(found.Config.Labels?.[AGENT_SERVER_LABEL]),
      hasRelay: Boolean(found.Config.Labels?.[RELAY_IMAGE_LABEL]),
      variables: found.Config.Env ?? [],
    }
  );
}

async function pull(
  docker: Docker,
  image: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const progress = new PullProgress(image);
  try {
    for await (const event of jsonLines(await docker.pull(image, { abortSignal: signal }))) {
      const problem = jsonText(event, 'errorDetail', 'message') ?? jsonText(event, 'error');
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
    if (failure instanceof SandboxBackendUnavailableError) {
      throw failure;
    }
    throw new SandboxBackendError(
      `${failure.message} (is the name right? An image that needs a login is pulled by hand: docker pull ${image})`,
      { cause: error },
    );
  }
}

interface Layer {
  isDone: boolean;
  loadedBytes: number;
  unpackedBytes: number;
}

/** Turns the engine's pull events into lines for users (Engine API, "Create an image"). */
export class PullProgress {
  private readonly layers = new Map<string, Layer>();
  private line = '';

  constructor(private readonly image: string) {}

  next(event: unknown): string | null {
    this.record(event);
    const line = this.describe();
    if (line === this.line) {
      return null;
    }
    this.line = line;
    return line;
  }

  private record(event: unknown): void {
    const [id, status] = [jsonText(event, 'id'), jsonText(event, 'status')];
    // The first event has the tag in place of a layer.
    if (id === null || status === null || status.startsWith('Pulling from')) {
      return;
    }
    const layer = this.layers.get(id) ?? { isDone: false, loadedBytes: 0, unpackedBytes: 0 };
    const bytes = jsonNumber(event, 'progressDetail', 'current') ?? 0;
    this.layers.set(id, {
      isDone: DONE_STATUSES.has(status),
      loadedBytes: Math.max(layer.loadedBytes, status === 'Downloading' ? bytes : 0),
      unpackedBytes: Math.max(layer.unpackedBytes, status === 'Extracting' ? bytes : 0),
    });
  }

  private describe(): string {
    const layers = [...this.layers.values()];
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
