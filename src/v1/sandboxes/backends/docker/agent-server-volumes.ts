import { randomBytes } from 'node:crypto';
import Docker, {
  type ContainerCreateOptions,
  type ContainerInspectInfo,
  type MountSettings,
} from 'dockerode';
import { KeyedLimit } from '../../../../common/async.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { AGENT_FILES_LABEL, CREATED_LABEL, INSTANCE_LABEL, SANDBOX_LABEL } from './container.js';
import type { DockerBackendOptions } from './docker-options.js';
import { engineFailure, withDeadline, removeContainer, nullOnStatus } from './engine.js';
import { findImage } from './images.js';

/** Where our agent server and its Node.js are in the images that have them, and are mounted in others. */
const AGENT_SERVER_FOLDER = '/opt/slipway';

/** How our own image starts it (Dockerfile). */
export const AGENT_SERVER_COMMAND = [
  `${AGENT_SERVER_FOLDER}/bin/node`,
  '--max-semi-space-size=2',
  `${AGENT_SERVER_FOLDER}/agent-server/main.js`,
  '--host',
  '0.0.0.0',
  '--port',
  '8000',
  '--secrets-stdin',
];

/**
 * The container of a sandbox whose image has no agent server: with ours beside what is in the image, read-only.
 *
 * @param volume has the files of our agent server
 */
export function mountAgentServer(options: ContainerCreateOptions, volume: string): ContainerCreateOptions {
  const mount: MountSettings = {
    Type: 'volume',
    Source: volume,
    Target: AGENT_SERVER_FOLDER,
    ReadOnly: true,
  };
  return {
    ...options,
    Entrypoint: AGENT_SERVER_COMMAND,
    // The image may name another one, which would end the server before it has put things in order.
    StopSignal: 'SIGTERM',
    HostConfig: { ...options.HostConfig, Mounts: [...(options.HostConfig?.Mounts ?? []), mount] },
  };
}

/**
 * A container, never to be started, that comes before the one of a sandbox whose image has no `/sandbox`: the engine gives
 * an empty volume the owner and the content of the folder that it is mounted over. It has the sandbox's name and labels,
 * so that it is found, and goes, like the sandbox's own when a start is cut off.
 *
 * @param image has our agent server, and the folder
 */
export function volumeOwner(options: ContainerCreateOptions, image: string): ContainerCreateOptions {
  return {
    ...(options.name !== undefined && { name: options.name }),
    Labels: options.Labels ?? {},
    Image: image,
    HostConfig: { NetworkMode: 'none', Mounts: options.HostConfig?.Mounts ?? [] },
  };
}

/** Whether a container runs our agent server in an image that has none. */
export function hasMountedAgentServer({ Mounts }: Pick<ContainerInspectInfo, 'Mounts'>): boolean {
  return Mounts.some(({ Destination }) => Destination === AGENT_SERVER_FOLDER);
}

/** On a slow disk; whoever gives up earlier begins again, beside what still goes on. */
const FILL_MS = 10 * 60_000;

/** Where our agent server is, for images that have none. */
interface AgentServerSource {
  /** Volume with its files. */
  volume: string;
  /** Id of the image that they are of. */
  image: string;
}

/** The files of our agent server, taken out of its image once into a volume that all sandboxes may share. */
export class AgentServerVolumes {
  readonly #docker: Docker;
  readonly #options: Pick<DockerBackendOptions, 'instanceId' | 'defaultImage'>;
  /** A volume for each of many sandboxes that start at the same time would be a waste. */
  readonly #turns = new KeyedLimit(1);

  constructor(docker: Docker, options: Pick<DockerBackendOptions, 'instanceId' | 'defaultImage'>) {
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
        const left = staleVolumes(await this.#list(), image, Date.now());
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
      ({ Labels }) =>
        !(SANDBOX_LABEL in Labels) && isStale({ createdAt: Number(Labels[CREATED_LABEL]) }, now),
    );
    await Promise.all(left.map(async ({ Id }) => await removeContainer(this.#docker, Id)));
  }

  /** Nothing happens when a container uses it. */
  async #removeVolume(name: string): Promise<void> {
    await nullOnStatus([404, 409], this.#docker.getVolume(name).remove());
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
        await this.#docker.createVolume({ Name: readyMarkOf(name), Labels: labels });
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

  async #list(): Promise<AgentServerVolume[]> {
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
      return await withDeadline(ask(), deadlineMs);
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

/** Long enough for whoever fills a volume just now, in any replica. */
const OLD_MS = 60 * 60 * 1000;
const MARK = '-ready';

/** A volume with the files of an agent server, or the mark of one. */
export interface AgentServerVolume {
  name: string;
  /** Id of the image that they are of. */
  image: string;
  /** Epoch milliseconds. */
  createdAt: number;
}

/**
 * Name of the empty volume that says of another one that all files are in it. The engine has nothing else to say that
 * with: it copies into a volume while others may already use it, and one that was killed meanwhile finds the container
 * for which it copied as if all had gone well. So each attempt has a volume of its own, and what is not marked is not used.
 */
export function readyMarkOf(name: string): string {
  return `${name}${MARK}`;
}

/** Whether something was made so long ago that nobody is at it any more. */
function isStale({ createdAt }: Pick<AgentServerVolume, 'createdAt'>, now: number): boolean {
  return now - createdAt >= OLD_MS;
}

/** The volume to use of those that have an image's files; null when none is ready. The same one for all who ask. */
export function readyVolume(volumes: readonly AgentServerVolume[], image: string): string | null {
  const names = new Set(volumes.filter((volume) => volume.image === image).map(({ name }) => name));
  const [first = null] = [...names].filter((name) => names.has(readyMarkOf(name))).toSorted();
  return first;
}

/**
 * What nobody needs any more, unless a container still uses it: files of earlier images, and what was left by attempts
 * that were cut off.
 *
 * @param image whose files are wanted; null when the engine has no such image
 */
export function staleVolumes(
  volumes: readonly AgentServerVolume[],
  image: string | null,
  now: number,
): string[] {
  const ready = image === null ? null : readyVolume(volumes, image);
  const kept = new Set(ready === null ? [] : [ready, readyMarkOf(ready)]);
  return volumes
    .filter(({ name, createdAt }) => !kept.has(name) && isStale({ createdAt }, now))
    .map(({ name }) => name);
}
