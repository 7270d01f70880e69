import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { KeyedQueue } from '../../../../common/keyed-queue.js';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { type AgentFiles, isLeft, leftAgentFiles, markOf, readyVolume } from './agent-files.js';
import type { DockerSandboxOptions } from './docker-options.js';
import { inTime } from './engine-deadline.js';
import { engineFailure } from './engine-failure.js';
import { findImage } from './find-image.js';
import { AGENT_SERVER_COMMAND, AGENT_SERVER_FOLDER } from './mount-agent-server.js';
import { removeContainer } from './remove-container.js';
import { AGENT_FILES_LABEL, CREATED_LABEL, INSTANCE_LABEL, SANDBOX_LABEL } from './sandbox-names.js';
import { unlessStatus } from './unless-status.js';

/** On a slow disk; whoever gives up earlier begins again, beside what still goes on. */
const FILL_MS = 10 * 60_000;

/** Where our agent server is, for images that have none. */
export interface AgentServerSource {
  /** Volume with its files. */
  volume: string;
  /** Id of the image that they are of. */
  image: string;
}

/** The files of our agent server, taken out of its image once into a volume that all sandboxes may share. */
export class AgentServerVolumes {
  readonly #docker: Docker;
  readonly #options: Pick<DockerSandboxOptions, 'instanceId' | 'defaultImage'>;
  /** A volume for each of many sandboxes that start at the same time would be a waste. */
  readonly #turns = new KeyedQueue();

  constructor(docker: Docker, options: Pick<DockerSandboxOptions, 'instanceId' | 'defaultImage'>) {
    this.#docker = docker;
    this.#options = options;
  }

  /**
   * Get-or-create.
   *
   * @param wantedBy the image that has no agent server
   * @throws SandboxBackendError when there is none to take
   */
  async source(wantedBy: string, onProgress: (line: string) => void): Promise<AgentServerSource> {
    const { defaultImage } = this.#options;
    const found = await findImage(this.#docker, defaultImage);
    if (!found?.hasAgentServer) {
      throw new SandboxBackendError(noneToTake(wantedBy, defaultImage, found !== null));
    }
    const { id: image } = found;
    const volume = await this.#turns.run(image, async () => {
      const ready = readyVolume(await this.#list(), image);
      if (ready !== null) {
        return ready;
      }
      onProgress(`taking our agent server out of the image ${defaultImage}`);
      return await this.#fill(image);
    });
    return { volume, image };
  }

  /**
   * Removes what no container uses any more, never by force.
   *
   * @param image whose files are kept, by its id; null when the engine does not have it
   * @returns why that cannot be done, in a line for the log: the space is lost, and nothing else
   */
  async removeOld(image: string | null): Promise<string[]> {
    try {
      await this.#call('files of earlier agent servers cannot be removed', async () => {
        await this.#removeLeftContainers();
        const left = leftAgentFiles(await this.#list(), image, Date.now());
        await Promise.all(left.map(async (name) => await this.#removeVolume(name)));
      });
      return [];
    } catch (error) {
      if (error instanceof SandboxBackendError) {
        return [error.message];
      }
      throw error;
    }
  }

  /** Of those who died while they filled a volume. */
  async #removeLeftContainers(): Promise<void> {
    const containers = await this.#docker.listContainers({ all: true, filters: { label: this.#labels() } });
    const now = Date.now();
    const left = containers.filter(
      // Containers have the labels of their images as well, and any image may name these.
      ({ Labels }) => !(SANDBOX_LABEL in Labels) && isLeft({ createdAt: Number(Labels[CREATED_LABEL]) }, now),
    );
    await Promise.all(left.map(async ({ Id }) => await removeContainer(this.#docker, Id)));
  }

  /** Nothing happens when a container uses it. */
  async #removeVolume(name: string): Promise<void> {
    await unlessStatus([404, 409], this.#docker.getVolume(name).remove());
  }

  #labels(): string[] {
    return [`${INSTANCE_LABEL}=${this.#options.instanceId}`, AGENT_FILES_LABEL];
  }

  /** @returns the name of a volume that is filled and marked */
  async #fill(image: string): Promise<string> {
    const [, content = image] = image.split(':');
    const name = `slipway-agent-server-${content.slice(0, 12)}-${randomBytes(4).toString('hex')}`;
    const labels = {
      [INSTANCE_LABEL]: this.#options.instanceId,
      [AGENT_FILES_LABEL]: image,
      [CREATED_LABEL]: String(Date.now()),
    };
    const fill = async (): Promise<void> => {
      try {
        await this.#docker.createVolume({ Name: name, Labels: labels });
        await this.#copy(image, name, labels);
        await this.#docker.createVolume({ Name: markOf(name), Labels: labels });
      } catch (error) {
        // What is left of it here is never used; another start of the service removes it.
        await this.#removeVolume(name).catch(() => undefined);
        throw error;
      }
    };
    await this.#call('our agent server cannot be taken out of its image', fill, FILL_MS);
    return name;
  }

  /** The engine copies what the image has there into an empty volume when it makes the container (others: when it starts). */
  async #copy(image: string, volume: string, labels: Record<string, string>): Promise<void> {
    const [node = '', , main = ''] = AGENT_SERVER_COMMAND;
    const container = await this.#docker.createContainer({
      Image: image,
      // Looks whether all that it needs to begin is there, and on the disk: the mark must not outlive the files.
      Entrypoint: ['sh', '-c', `${node} --check ${main} && sync --file-system ${AGENT_SERVER_FOLDER}`],
      Labels: labels,
      HostConfig: {
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        NetworkMode: 'none',
        Mounts: [{ Type: 'volume', Source: volume, Target: AGENT_SERVER_FOLDER }],
      },
    });
    try {
      await container.start();
      const { StatusCode }: { StatusCode: number } = await container.wait();
      if (StatusCode !== 0) {
        throw new Error(`it does not begin there (exit code ${StatusCode})`);
      }
    } finally {
      await removeContainer(this.#docker, container.id);
    }
  }

  async #list(): Promise<AgentFiles[]> {
    const { Volumes } = await this.#call('the volumes of agent servers cannot be listed', () =>
      this.#docker.listVolumes({ filters: { label: this.#labels() } }),
    );
    return (Volumes ?? []).map(({ Name, Labels }) => ({
      name: Name,
      image: Labels[AGENT_FILES_LABEL] ?? '',
      createdAt: Number(Labels[CREATED_LABEL]) || 0,
    }));
  }

  async #call<T>(what: string, ask: () => Promise<T>, deadlineMs?: number): Promise<T> {
    try {
      return await inTime(ask(), deadlineMs);
    } catch (error) {
      throw engineFailure(what, error);
    }
  }
}

function noneToTake(wantedBy: string, defaultImage: string, isThere: boolean): string {
  const build = `"npm run image:agent-server -- --tag ${defaultImage}"`;
  const without = `the image ${wantedBy} has no Slipway agent server`;
  if (wantedBy === defaultImage) {
    return `${without}: build it with ${build}`;
  }
  const other = isThere ? `neither has ${defaultImage}` : `the engine has no image ${defaultImage}`;
  return `${without}, and ${other} to take it from: build that with ${build}`;
}
