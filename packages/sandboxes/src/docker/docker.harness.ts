import { describe } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type Docker from 'dockerode';
import { connectEngine, nullOnStatus } from './engine.js';
import type { DockerBackendOptions } from './docker.options.js';
import { DockerSandboxBackend } from './docker.backend.js';
import type { SandboxBackend, SandboxLaunch } from '../sandbox-backend.js';
import { sandboxLaunch } from '../../../../test/support/sandbox-launch.js';
import type { SandboxBackendHarness } from '../sandbox-backend.harness.js';

/** The image of `npm run image:agent-server` in the engine of `DOCKER_HOST`; without it these tests are skipped. */
export const AGENT_IMAGE = process.env['SLIPWAY_TEST_DOCKER_IMAGE'] ?? '';
export const DOCKER_HOST = process.env['DOCKER_HOST'] ?? null;
export const describeWithEngine = AGENT_IMAGE === '' ? describe.skip : describe;

/** An image derived from the agent's, with a program of the test in place of its own. */
export interface ImageVariant {
  image: string;
  remove(): Promise<void>;
}

/** Sandboxes of an installation of its own in the engine. */
export class DockerHarness implements SandboxBackendHarness {
  readonly docker: Docker = connectEngine(DOCKER_HOST);
  readonly instanceId = `test-${randomBytes(6).toString('hex')}`;
  backend: SandboxBackend;
  /** The image that our own agent server is launched in; null: the backend's default. */
  image: string | null = null;
  private readonly options: Partial<DockerBackendOptions>;
  private readonly broken: string;
  private readonly folder: string;

  private constructor(broken: string, folder: string, options: Partial<DockerBackendOptions>) {
    this.broken = broken;
    this.folder = folder;
    this.options = options;
    this.backend = this.another();
  }

  static async make(broken: string, options: Partial<DockerBackendOptions> = {}): Promise<DockerHarness> {
    const folder = await mkdtemp(path.join(tmpdir(), 'docker-backend-'));
    const harness = new DockerHarness(broken, folder, options);
    await writeFile(harness.hidden.file, harness.hidden.text);
    await harness.backend.prepare();
    return harness;
  }

  get socketFolder(): string {
    return path.join(this.folder, 'sockets');
  }

  get hidden() {
    return { file: path.join(this.folder, 'hidden'), text: 'not for tools' };
  }

  another(options: Partial<DockerBackendOptions> = {}): DockerSandboxBackend {
    return new DockerSandboxBackend({
      dockerHost: DOCKER_HOST,
      instanceId: this.instanceId,
      listenAddress: null,
      defaultImage: AGENT_IMAGE,
      environment: {},
      network: null,
      subnets: '198.18.0.0/16',
      socketFolder: this.socketFolder,
      pidsLimit: 256,
      cpu: 1,
      memoryMb: 512,
      minFreeBytes: 0,
      sandboxBytes: 0,
      graceSeconds: 10,
      ...this.options,
      ...options,
    });
  }

  async reopen(): Promise<SandboxBackend> {
    this.backend = this.another();
    await this.backend.prepare();
    return this.backend;
  }

  launch(changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
    return sandboxLaunch({ program: { kind: 'native', image: this.image }, ...changes });
  }

  brokenLaunch(): SandboxLaunch {
    return this.imageLaunch(this.broken);
  }

  imageLaunch(image: string, changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
    return this.launch({ program: { kind: 'image', image, args: [] }, workingDir: 'project', ...changes });
  }

  async close(): Promise<void> {
    const remaining = await this.another().list();
    await Promise.all(remaining.map(({ id }) => this.backend.remove(id)));
    const volumes = await this.agentServerVolumes();
    await Promise.all(volumes.map(async (name) => await this.docker.getVolume(name).remove()));
    await nullOnStatus([404], this.docker.getNetwork(`slipway-${this.instanceId}`).remove());
    await rm(this.folder, { recursive: true, maxRetries: 10 });
  }

  /** Names of the volumes that hold an agent server for images without one, and of their marks. */
  async agentServerVolumes(): Promise<string[]> {
    const label = [`slipway.instance=${this.instanceId}`, 'slipway.agent-server-of'];
    const { Volumes } = await this.docker.listVolumes({ filters: { label } });
    return (Volumes ?? []).map(({ Name }) => Name).toSorted();
  }
}

/** Derives an image that runs a program from the agent's. */
export async function imageVariant(entryPoint: string[], labels: string[] = []): Promise<ImageVariant> {
  return await changedImage(null, [
    `ENTRYPOINT ${JSON.stringify(entryPoint)}`,
    ...labels.map((label) => `LABEL ${label}`),
  ]);
}

/** Derives an image without anything of ours, whose own settings all differ. */
export async function plainImage(): Promise<ImageVariant> {
  return await changedImage('rm -r /opt/slipway /sandbox && userdel agent', [
    'LABEL slipway.agent-server=',
    'ENV HOME=/root',
    'WORKDIR /',
    'USER root',
    'ENTRYPOINT ["false"]',
  ]);
}

/** @param script runs first, to change files */
async function changedImage(script: string | null, changes: string[]): Promise<ImageVariant> {
  const docker = connectEngine(DOCKER_HOST);
  const repo = `slipway-test-${randomBytes(6).toString('hex')}`;
  const container = await docker.createContainer({
    Image: AGENT_IMAGE,
    ...(script !== null && {
      Entrypoint: ['sh', '-ec', script],
      User: '0',
      WorkingDir: '/',
      StopSignal: 'SIGKILL',
    }),
  });
  try {
    if (script !== null) {
      await container.start();
      const { StatusCode }: { StatusCode: number } = await container.wait();
      if (StatusCode !== 0) {
        throw new Error(`failed to derive the image (exit code ${StatusCode})`);
      }
    }
    await container.commit({ repo, changes });
  } finally {
    await container.remove();
  }
  return {
    image: repo,
    remove: async () => {
      await docker.getImage(repo).remove();
    },
  };
}
