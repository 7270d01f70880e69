import { spawnSync } from 'node:child_process';
import type Docker from 'dockerode';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../../../packages/sandboxes/src/container-layout.js';
import { connectEngine } from '../../../packages/sandboxes/src/docker/engine.js';
import { bridgeAddress } from '../../support/engine-address.js';
import type { AttackedBackend } from '../attack.js';
import { missingForPods, openCluster } from './attacked-cluster.js';

const DOCKER_HOST = process.env['DOCKER_HOST'] ?? null;
const AGENT_IMAGE = process.env['SLIPWAY_TEST_DOCKER_IMAGE'] ?? 'slipway-agent-server';
const BUBBLEWRAP_TRIAL = ['--ro-bind', '/', '/', '--unshare-pid', '--unshare-net', '--proc', '/proc', 'true'];

/** How to have a service use a backend. */
export interface BackendSetup {
  /** Variables of the service. */
  environment: Record<string, string>;
  /** An address of this machine at which agent servers reach the model and the git server. */
  host: string;
  /** Further variables, others for each process of the service. */
  ofProcess?: () => Promise<Record<string, string>>;
  /** Removes what was made for the attacks. */
  close?: () => Promise<void>;
}

/** Why a backend cannot be attacked on this machine; null: it can. */
export async function missingFor(backend: AttackedBackend): Promise<string | null> {
  switch (backend) {
    case 'process':
      return spawnSync('bwrap', BUBBLEWRAP_TRIAL).status === 0 &&
        spawnSync('slirp4netns', ['--version']).status === 0
        ? null
        : 'it needs bubblewrap and slirp4netns, and namespaces that they may make';
    case 'unwrapped':
      return null;
    case 'docker':
      return missingForDocker();
    case 'kubernetes':
      return missingForPods();
  }
}

export async function setupOf(backend: AttackedBackend): Promise<BackendSetup> {
  switch (backend) {
    case 'process':
      return {
        environment: { SANDBOX_ISOLATION: 'bwrap', SANDBOX_NETWORK: 'isolated' },
        host: '127.0.0.1',
      };
    case 'unwrapped':
      return { environment: { SANDBOX_ISOLATION: 'none' }, host: '127.0.0.1' };
    case 'docker':
      return {
        environment: {
          SANDBOX_BACKEND: 'docker',
          ...(DOCKER_HOST !== null && { DOCKER_HOST }),
        },
        host: await hostOfContainers(),
      };
    case 'kubernetes':
      return openCluster();
  }
}

/** Removes what an installation has left in the engine. */
export async function removeContainers(instanceId: string): Promise<void> {
  const engine = connectEngine(DOCKER_HOST);
  const filters = { label: [`${INSTANCE_LABEL}=${instanceId}`] };
  const containers = await engine.listContainers({ all: true, filters });
  await Promise.all(containers.map(({ Id }) => engine.getContainer(Id).remove({ force: true })));
  const { Volumes: volumes } = await engine.listVolumes({ filters });
  await Promise.all(volumes.map(({ Name }) => engine.getVolume(Name).remove()));
  const networks = await engine.listNetworks({ filters });
  await Promise.all(networks.map(({ Id }) => engine.getNetwork(Id).remove()));
}

/** How many containers of an installation there are, running or not. */
export async function countContainers(instanceId: string): Promise<number> {
  const filters = { label: [`${INSTANCE_LABEL}=${instanceId}`] };
  return (await connectEngine(DOCKER_HOST).listContainers({ all: true, filters })).length;
}

/** Addresses of a sandbox's container in the engine's networks. */
export async function addressesOfContainer(instanceId: string, sandboxId: string): Promise<string[]> {
  const { NetworkSettings: settings } = await inspectContainer(instanceId, sandboxId);
  return Object.values(settings.Networks).map(({ IPAddress }) => IPAddress);
}

/** What the engine says of the container of a running sandbox. */
export async function inspectContainer(
  instanceId: string,
  sandboxId: string,
): Promise<Docker.ContainerInspectInfo> {
  const id = await containerId(instanceId, sandboxId);
  if (id === null) {
    throw new Error(`no container of sandbox ${sandboxId} runs`);
  }
  return connectEngine(DOCKER_HOST).getContainer(id).inspect();
}

/** Whether the container of a sandbox runs. */
export async function hasContainer(instanceId: string, sandboxId: string): Promise<boolean> {
  return (await containerId(instanceId, sandboxId)) !== null;
}

async function containerId(instanceId: string, sandboxId: string): Promise<string | null> {
  const label = [`${INSTANCE_LABEL}=${instanceId}`, `${SANDBOX_LABEL}=${sandboxId}`];
  const [found] = await connectEngine(DOCKER_HOST).listContainers({ filters: { label } });
  return found?.Id ?? null;
}

async function missingForDocker(): Promise<string | null> {
  const engine = connectEngine(DOCKER_HOST);
  try {
    await engine.getImage(AGENT_IMAGE).inspect();
    await hostOfContainers();
    return null;
  } catch (error) {
    return `no Docker engine with the image ${AGENT_IMAGE} (npm run image:agent-server): ${errorMessage(error)}`;
  }
}

async function hostOfContainers(): Promise<string> {
  const host = await bridgeAddress(connectEngine(DOCKER_HOST));
  if (host === null) {
    throw new Error('the default network of the Docker engine names no gateway');
  }
  return host;
}
