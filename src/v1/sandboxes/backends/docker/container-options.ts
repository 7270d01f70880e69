import type { ContainerCreateOptions } from 'dockerode';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { portVariables } from '../port-variables.js';
import { proxyVariables } from '../proxy-variables.js';
import type { SandboxLaunch } from '../sandbox-backend.js';
import { AGENT_PORT } from './container-facts.js';
import type { DockerSandboxOptions } from './docker-options.js';
import type { EngineFacts } from './engine-facts.js';
import type { SandboxLayout } from './sandbox-layout.js';
import type { SandboxReach } from './sandbox-reach.js';
import {
  CREATED_LABEL,
  INSTANCE_LABEL,
  PORTS_LABEL,
  SANDBOX_LABEL,
  sandboxHostName,
  sandboxName,
} from './sandbox-names.js';

const MEBIBYTE = 1024 * 1024;
const NANO = 1e9;
/** Of the agent image; nobody else's in the images of others. */
const USER = '10001:10001';
const LOG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } };
/** Inside a container: what is published is not reached on its loopback. */
const EVERY_ADDRESS = '0.0.0.0';
/** The sandbox would be the host's, nobody's or another container's neighbour. */
const UNUSABLE_NETWORK = /^(host|none|container:.*)$/;

/** A container for a sandbox: everything it may not do, and the little that it may. */
export function containerOptions(
  launch: SandboxLaunch,
  layout: SandboxLayout,
  options: Pick<
    DockerSandboxOptions,
    'instanceId' | 'network' | 'pidsLimit' | 'cpu' | 'memoryMb' | 'environment'
  >,
  reach: SandboxReach,
  engine: EngineFacts,
  createdAt: number,
): ContainerCreateOptions {
  const memory = (launch.memoryMb ?? options.memoryMb) * MEBIBYTE;
  const network = networkOf(launch, options.network);
  const ports = [AGENT_PORT, ...Object.values(launch.ports)].map((port) => `${port}/tcp`);
  const env = {
    ...proxyVariables(options.environment, launch, false),
    ...layout.env,
    ...portVariables(launch.ports, EVERY_ADDRESS),
  };
  return {
    name: sandboxName(launch.id),
    Image: layout.image,
    Cmd: layout.args,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    User: USER,
    WorkingDir: layout.folder,
    Labels: {
      [INSTANCE_LABEL]: options.instanceId,
      [SANDBOX_LABEL]: launch.id,
      [CREATED_LABEL]: String(createdAt),
      [PORTS_LABEL]: JSON.stringify(launch.ports),
    },
    OpenStdin: layout.keyOnStdin,
    StdinOnce: layout.keyOnStdin,
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    // Whether it answers is asked by the service; the image's own check would only cost.
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      // Build tools run what they put there. It counts as the sandbox's memory.
      Tmpfs: { '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${Math.floor(memory / 2)}` },
      Mounts: [{ Type: 'volume', Source: sandboxName(launch.id), Target: layout.folder }],
      PidsLimit: options.pidsLimit,
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(Math.min(launch.cpu ?? options.cpu, engine.processors) * NANO),
      LogConfig: LOG,
      RestartPolicy: { Name: 'no' },
      ...(launch.runtime !== null && { Runtime: launch.runtime }),
      ...(network !== null && { NetworkMode: network }),
      ...(reach.by === 'port' && {
        // 0: the engine chooses one that is free.
        PortBindings: Object.fromEntries(
          ports.map((port) => [port, [{ HostIp: reach.hostIp, HostPort: '0' }]]),
        ),
        ...(engine.knowsHostGateway && { ExtraHosts: ['host.docker.internal:host-gateway'] }),
      }),
    },
    ...(network !== null &&
      reach.by === 'name' && {
        NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [sandboxHostName(launch.id)] } } },
      }),
  };
}

/** The specification's own network goes before the service's, which has to be in that one too. */
function networkOf(launch: SandboxLaunch, common: string | null): string | null {
  if (launch.network !== null && UNUSABLE_NETWORK.test(launch.network)) {
    throw new SandboxBackendError(
      `a sandbox in the network "${launch.network}" could not be reached: the specification must name a bridge network of the engine`,
    );
  }
  return launch.network ?? common;
}
