import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonText } from '@slipway/common/json-access.js';
import {
  AGENT_SERVER_ENTRY,
  AGENT_SERVER_FOLDER,
  AGENT_SERVER_NODE,
  INSTANCE_LABEL,
  SANDBOX_LABEL,
} from '../container-layout.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { AGENT_FILES_LABEL, CREATED_LABEL, sandboxName } from './container.js';
import type { DockerBackendOptions } from './docker.options.js';
import { callEngine, nullOnStatus, removeContainer } from './engine.js';
import { findImage } from './images.js';

/** One volume per sandbox holds its files, from the first start until the removal. */
export class SandboxVolumes {
  constructor(
    private readonly docker: Docker,
    private readonly instanceId: string,
  ) {}

  async create(id: string): Promise<number> {
    const name = sandboxName(id);
    await callEngine('the volume of the sandbox cannot be created', () =>
      this.docker.createVolume({
        Name: name,
        // The engine ignores the labels when the volume exists.
        Labels: {
          [INSTANCE_LABEL]: this.instanceId,
          [SANDBOX_LABEL]: id,
          [CREATED_LABEL]: String(Date.now()),
        },
      }),
    );
    const createdAt = await this.createdAt(id);
    if (createdAt === null) {
      throw new SandboxBackendError(`the volume ${name} belongs to another installation`);
    }
    return createdAt;
  }

  /** Epoch milliseconds; null when there is no such volume of ours. */
  async createdAt(id: string): Promise<number | null> {
    const volume = await callEngine('the volume of the sandbox cannot be inspected', () =>
      nullOnStatus([404], this.docker.getVolume(sandboxName(id)).inspect()),
    );
    if (volume === null || volume.Labels?.[INSTANCE_LABEL] !== this.instanceId) {
      return null;
    }
    // The engine's own date changes with the folder.
    return (
      Number(volume.Labels[CREATED_LABEL]) || Date.parse(jsonText(volume, 'CreatedAt') ?? '') || Date.now()
    );
  }

  async remove(id: string): Promise<void> {
    if ((await this.createdAt(id)) === null) {
      return;
    }
    await callEngine('the files of the sandbox cannot be removed', () =>
      nullOnStatus([404], this.docker.getVolume(sandboxName(id)).remove()),
    );
  }

  async list(): Promise<string[]> {
    const { Volumes } = await callEngine('the volumes of the sandboxes cannot be listed', () =>
      this.docker.listVolumes({ filters: { label: [`${INSTANCE_LABEL}=${this.instanceId}`] } }),
    );
    return (Volumes ?? []).flatMap(({ Labels }) => Labels[SANDBOX_LABEL] ?? []);
  }
}

/** Enough for a slow disk. A caller that gives up earlier starts another copy beside this one. */
const FILL_DEADLINE_MS = 10 * 60_000;
/** Longer than any replica takes to fill a volume. */
const STALE_MS = 60 * 60 * 1000;
const READY_SUFFIX = '-ready';

export interface AgentServerVolume {
  name: string;
  image: string;
  /** Epoch milliseconds. */
  createdAt: number;
}

/** Copies our agent server from its image once, into a volume that all sandboxes share. */
export class AgentServerVolumes {
  private readonly queue = new KeyedLimit(1);

  constructor(
    private readonly docker: Docker,
    private readonly options: Pick<DockerBackendOptions, 'instanceId' | 'defaultImage'>,
  ) {}

  /** `wantedBy` is an image without an agent server. @throws SandboxBackendError when there is none to copy */
  async source(
    wantedBy: string,
    onProgress: (line: string) => void,
  ): Promise<{ volume: string; image: string }> {
    const { defaultImage } = this.options;
    const found = await findImage(this.docker, defaultImage);
    if (!found?.hasAgentServer) {
      throw new SandboxBackendError(missingAgentServer(wantedBy, defaultImage, found !== null));
    }
    const { id: image } = found;
    const volume = await this.queue.run(image, async () => {
      const ready = readyVolume(await this.list(), image);
      if (ready !== null) {
        return ready;
      }
      onProgress(`taking our agent server out of the image ${defaultImage}`);
      return await this.createFilled(image);
    });
    return { volume, image };
  }

  /** Removes unused volumes, except those of `image`. A failure costs only disk space, so it becomes a line to log. */
  async removeStale(image: string | null): Promise<string[]> {
    try {
      await callEngine('files of earlier agent servers cannot be removed', async () => {
        await this.removeStaleContainers();
        const stale = staleVolumes(await this.list(), image, Date.now());
        await Promise.all(stale.map(async (name) => await this.removeVolume(name)));
      });
      return [];
    } catch (error) {
      return [errorMessage(error)];
    }
  }

  private async removeStaleContainers(): Promise<void> {
    const containers = await this.docker.listContainers({ all: true, filters: { label: this.labels() } });
    const now = Date.now();
    const stale = containers.filter(
      // Containers inherit the labels of their images, and any image may set these.
      ({ Labels }) => !(SANDBOX_LABEL in Labels) && isStale(Number(Labels[CREATED_LABEL]), now),
    );
    await Promise.all(stale.map(async ({ Id }) => await removeContainer(this.docker, Id)));
  }

  private async removeVolume(name: string): Promise<void> {
    await nullOnStatus([404, 409], this.docker.getVolume(name).remove());
  }

  private async createFilled(image: string): Promise<string> {
    const [, content = image] = image.split(':');
    const name = `slipway-agent-server-${content.slice(0, 12)}-${randomBytes(4).toString('hex')}`;
    const labels = {
      [INSTANCE_LABEL]: this.options.instanceId,
      [AGENT_FILES_LABEL]: image,
      [CREATED_LABEL]: String(Date.now()),
    };
    const fill = async (): Promise<void> => {
      try {
        await this.docker.createVolume({ Name: name, Labels: labels });
        await this.copyFiles(image, name, labels);
        await this.docker.createVolume({ Name: readyMarkOf(name), Labels: labels });
      } catch (error) {
        // A volume without a mark is never used; the next start of the service removes it.
        await this.removeVolume(name).catch(() => undefined);
        throw error;
      }
    };
    await callEngine('our agent server cannot be taken out of its image', fill, FILL_DEADLINE_MS);
    return name;
  }

  /** Docker copies into an empty volume when it creates the container; other engines when they start it. */
  private async copyFiles(image: string, volume: string, labels: Record<string, string>): Promise<void> {
    const container = await this.docker.createContainer({
      Image: image,
      // Checks that the files are complete and synced: the mark must not outlive them.
      Entrypoint: [
        'sh',
        '-c',
        `${AGENT_SERVER_NODE} --check ${AGENT_SERVER_ENTRY} && sync --file-system ${AGENT_SERVER_FOLDER}`,
      ],
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
        throw new Error(`it does not start there (exit code ${StatusCode})`);
      }
    } finally {
      await removeContainer(this.docker, container.id);
    }
  }

  private async list(): Promise<AgentServerVolume[]> {
    const { Volumes } = await callEngine('the volumes of agent servers cannot be listed', () =>
      this.docker.listVolumes({ filters: { label: this.labels() } }),
    );
    return (Volumes ?? []).map(({ Name, Labels }) => ({
      name: Name,
      image: Labels[AGENT_FILES_LABEL] ?? '',
      createdAt: Number(Labels[CREATED_LABEL]) || 0,
    }));
  }

  private labels(): string[] {
    return [`${INSTANCE_LABEL}=${this.options.instanceId}`, AGENT_FILES_LABEL];
  }
}

function missingAgentServer(wantedBy: string, defaultImage: string, isThere: boolean): string {
  const build = `"npm run image:agent-server -- --tag ${defaultImage}"`;
  const without = `the image ${wantedBy} has no Slipway agent server`;
  if (wantedBy === defaultImage) {
    return `${without}: build it with ${build}`;
  }
  const other = isThere ? `neither has ${defaultImage}` : `the engine has no image ${defaultImage}`;
  return `${without}, and ${other} to take it from: build that with ${build}`;
}

/** The empty volume that marks another one as complete: to the engine an interrupted copy looks finished. */
export function readyMarkOf(name: string): string {
  return `${name}${READY_SUFFIX}`;
}

export function readyVolume(volumes: readonly AgentServerVolume[], image: string): string | null {
  const names = new Set(volumes.filter((volume) => volume.image === image).map(({ name }) => name));
  const [first = null] = [...names].filter((name) => names.has(readyMarkOf(name))).toSorted();
  return first;
}

/** Volumes of earlier images and interrupted attempts, to be removed unless used. `image` is kept. */
export function staleVolumes(
  volumes: readonly AgentServerVolume[],
  image: string | null,
  now: number,
): string[] {
  const ready = image === null ? null : readyVolume(volumes, image);
  const kept = new Set(ready === null ? [] : [ready, readyMarkOf(ready)]);
  return volumes
    .filter(({ name, createdAt }) => !kept.has(name) && isStale(createdAt, now))
    .map(({ name }) => name);
}

function isStale(createdAt: number, now: number): boolean {
  return now - createdAt >= STALE_MS;
}
