import { mkdir, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import type { DataSource } from 'typeorm';
import { productFolder } from '../../common/product.js';
import { parseDestination } from '../../common/http/network-destination.js';
import type { AppConfig } from '../../config/app-config.js';
import { PUBLIC_GIT_SERVERS } from '../../config/git-config.js';
import { ServiceStateRepository } from '../../database/service-state.repository.js';
import { SANDBOX_DEFAULTS } from './lifecycle/launch-plan.js';
import { AGENT_SERVER_FLAGS } from './backends/launch-variables.js';
import type { SandboxBackend } from './backends/sandbox-backend.js';

const AGENT_SERVER = path.join(productFolder(), 'dist', 'bundle', 'agent-server');
/** Enough for a step of the agent, and for its webhooks, to end. */
const GRACE_SECONDS = 10;
const MEBIBYTE = 1024 * 1024;

/**
 * Creates the backend that the operator chose. The others are not even loaded.
 *
 * @param callbackUrl how sandboxes reach the service, once it listens
 */
export async function createSandboxBackend(
  config: AppConfig,
  dataSource: DataSource,
  hostId: string,
  callbackUrl: () => string,
): Promise<SandboxBackend> {
  const { sandboxes, dataDir } = config;
  const instanceId = sandboxes.instanceId ?? (await new ServiceStateRepository(dataSource).instanceId());
  if (sandboxes.backend === 'docker') {
    const { DockerSandboxBackend } = await import('./backends/docker/docker.backend.js');
    return new DockerSandboxBackend({
      dockerHost: sandboxes.dockerHost,
      instanceId,
      listenAddress: sandboxes.address,
      defaultImage: sandboxes.image,
      network: sandboxes.dockerNetwork,
      pidsLimit: sandboxes.processes,
      ...SANDBOX_DEFAULTS,
      minFreeBytes: sandboxes.diskReserveMb * MEBIBYTE,
      sandboxBytes: sandboxes.diskMb * MEBIBYTE,
      environment: sandboxes.environment,
      graceSeconds: GRACE_SECONDS,
    });
  }
  if (sandboxes.backend === 'kubernetes') {
    const { KubernetesSandboxBackend } = await import('./backends/kubernetes/kubernetes.backend.js');
    return new KubernetesSandboxBackend({
      instanceId,
      kubeconfig: sandboxes.kubeconfig,
      namespace: sandboxes.namespace,
      reach: sandboxes.reach,
      defaultImage: sandboxes.image,
      volumeSize: sandboxes.volumeSize,
      storageClass: sandboxes.storageClass,
      runtimeClass: sandboxes.runtimeClass,
      serviceAccount: sandboxes.serviceAccount,
      ...SANDBOX_DEFAULTS,
      reachedFrom: sandboxes.reachedFrom,
      allow: [...sandboxes.networkAllow, ...configuredDestinations(config)],
      callbackUrl,
      nodeWaitMs: sandboxes.nodeWaitSeconds * 1000,
      environment: sandboxes.environment,
      graceSeconds: GRACE_SECONDS,
    });
  }
  const { ProcessSandboxBackend } = await import('./backends/process/process.backend.js');
  const { PROCESS_BACKEND_DEFAULTS } = await import('./backends/process/process-options.js');
  return new ProcessSandboxBackend({
    ...PROCESS_BACKEND_DEFAULTS,
    folder: await realFolder(path.join(dataDir, 'sandboxes')),
    instanceId,
    hostId,
    listenAddress: sandboxes.address,
    isolation: sandboxes.isolation,
    limits: {
      ...PROCESS_BACKEND_DEFAULTS.limits,
      ...SANDBOX_DEFAULTS,
      processes: sandboxes.processes,
      // One file alone must not take more than all files may.
      fileMb: sandboxes.diskMb,
    },
    fileLimits: {
      ...PROCESS_BACKEND_DEFAULTS.fileLimits,
      minFreeBytes: sandboxes.diskReserveMb * MEBIBYTE,
      sandboxBytes: sandboxes.diskMb * MEBIBYTE,
    },
    readPaths: sandboxes.readPaths.map((name) => path.resolve(name)),
    hiddenPaths: [
      dataDir,
      homedir(),
      path.resolve('.env'),
      ...databasePaths(urlOf(dataSource)),
      ...databasePaths(config.database.directUrl),
    ],
    agentServer: {
      node: process.execPath,
      entry: path.join(AGENT_SERVER, 'main.js'),
      relay: path.join(AGENT_SERVER, 'relay.main.js'),
      args: AGENT_SERVER_FLAGS,
    },
    network: {
      mode: sandboxes.network,
      allow: [...sandboxes.networkAllow, ...configuredDestinations(config)],
    },
    environment: sandboxes.environment,
  });
}

/** Creates the folder; sockets in there are only reached by a path without links. */
async function realFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 });
  return await realpath(folder);
}

/**
 * Hosts that the operator's own configuration names, in case they are not public: git servers, what settings may name, and
 * the proxy.
 */
export function configuredDestinations({ git, outbound, sandboxes }: AppConfig): string[] {
  const addresses = [
    ...Object.values(git.servers).flatMap(({ cloneUrl, apiUrl }) => [cloneUrl, apiUrl]),
    ...[...git.hostAllowlist, ...(outbound.allowlist ?? [])].filter((entry) => !entry.includes('*')),
    ...Object.entries(sandboxes.environment).flatMap(([name, value]) => (/_PROXY$/i.test(name) ? value : [])),
  ];
  const hosts = addresses.flatMap((address) => {
    const url = URL.parse(address.includes('://') ? address : `https://${address}`);
    return url === null ? [] : `${url.hostname}:${url.port || (url.protocol === 'http:' ? 80 : 443)}`;
  });
  return [...new Set(hosts)].filter((host) => parseDestination(host) !== null && !isPublic(host));
}

/** Known to be public: no start has to resolve it. */
function isPublic(host: string): boolean {
  return Object.values(PUBLIC_GIT_SERVERS).some((server) => `.${host}`.endsWith(`.${server.host}:443`));
}

function urlOf({ options }: DataSource): string | null {
  return 'url' in options && typeof options.url === 'string' ? options.url : null;
}

/**
 * Files of this machine that give access to the database: the folder of its socket and the client's key, if its address
 * names them (`?host=/folder`, `postgres://%2Ffolder/name`, `?sslkey=/file`).
 */
export function databasePaths(databaseUrl: string | null): string[] {
  if (databaseUrl === null || !URL.canParse(databaseUrl)) {
    return [];
  }
  const { hostname, searchParams } = new URL(databaseUrl);
  const host = searchParams.get('host') ?? decoded(hostname);
  const key = searchParams.get('sslkey');
  return [...(host.startsWith('/') ? [host] : []), ...(key === null ? [] : [path.resolve(key)])];
}

function decoded(hostname: string): string {
  try {
    return decodeURIComponent(hostname);
  } catch {
    // A host name with a literal percent sign: it is no path.
    return hostname;
  }
}
