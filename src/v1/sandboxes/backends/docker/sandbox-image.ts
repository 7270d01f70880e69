import type Docker from 'dockerode';
import { jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { engineFailure } from './engine-failure.js';
import { type FoundImage, findImage } from './find-image.js';
import { PullProgress } from './pull-progress.js';

/** What may name an image: it becomes part of a path of the engine's API, and users may choose it. */
const REFERENCE = /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/;

export interface WantedImage {
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
