import type Docker from 'dockerode';
import { jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { inTime } from './engine-deadline.js';
import { engineFailure, engineStatus } from './engine-failure.js';
import { PullProgress } from './pull-progress.js';
import { AGENT_SERVER_LABEL } from './sandbox-names.js';

/** What may name an image: it becomes part of a path of the engine's API, and users may choose it. */
const REFERENCE = /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/;

export interface WantedImage {
  image: string;
  /** Made here by a command of ours, so that no registry has it. */
  isOurs: boolean;
  /** Whether our agent server has to be in it. */
  needsAgentServer: boolean;
}

/**
 * Sees to it that the engine has an image, and that a sandbox can run from it.
 *
 * @param onProgress hears what a pull is doing
 * @throws SandboxBackendError that names the image and says what to do
 */
export async function ensureImage(
  docker: Docker,
  { image, isOurs, needsAgentServer }: WantedImage,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (!REFERENCE.test(image)) {
    throw new SandboxBackendError(`"${image}" cannot be the name of an image`);
  }
  let labels = await labelsOf(docker, image);
  if (labels === null) {
    if (isOurs) {
      throw new SandboxBackendError(
        `the engine has no image ${image}: build it with "npm run image:agent-server -- --tag ${image}"`,
      );
    }
    await pull(docker, image, onProgress, signal);
    labels = await labelsOf(docker, image);
  }
  if (needsAgentServer && !labels?.[AGENT_SERVER_LABEL]) {
    throw new SandboxBackendError(
      `the image ${image} has no Slipway agent server: build it FROM the image of "npm run image:agent-server", or, if it has another agent server, name it as the image of a sandbox specification`,
    );
  }
}

/** Null when the engine does not have it. */
async function labelsOf(docker: Docker, image: string): Promise<Record<string, string> | null> {
  try {
    return (await inTime(docker.getImage(image).inspect())).Config.Labels ?? {};
  } catch (error) {
    if (engineStatus(error) === 404) {
      return null;
    }
    throw engineFailure(`the image ${image} cannot be looked at`, error);
  }
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
