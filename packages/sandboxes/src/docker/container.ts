import type { ContainerCreateOptions, ContainerInspectInfo, HostConfig, MountSettings } from 'dockerode';
import { egressVariables, portVariables, proxyVariables, TOOL_VARIABLES } from '../launch-variables.js';
import {
  AGENT_PORT,
  AGENT_SERVER_COMMAND,
  AGENT_SERVER_FOLDER,
  AGENT_USER,
  EVERY_ADDRESS,
  INSTANCE_LABEL,
  SANDBOX_LABEL,
  type SandboxLayout,
} from '../container-layout.js';
import {
  parsePorts,
  type ProgramLaunch,
  SandboxBackendError,
  type SandboxExit,
  type SandboxFacts,
} from '../sandbox-backend.js';
import type { DockerBackendOptions } from './docker.options.js';
import type { EngineFacts } from './engine.js';
import { isIP, isIPv6 } from 'node:net';
import { parseJson } from '@slipway/common/json-access.js';

const MEBIBYTE = 1024 * 1024;
const OPEN_FILES = 16_384;
const NANO = 1e9;
const LOG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } };
/** A sandbox in one of these shares the network of the host or of another container, or has none. */
const UNUSABLE_NETWORK = /^(host|none|container:.*)$/;
/** Variables that are only for our agent server, or that are secret. */
const WITHHELD_VARIABLES = /^(NODE_|LD_|OH_|SLIPWAY_)|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;

export function containerOptions(
  launch: ProgramLaunch,
  layout: SandboxLayout,
  options: Pick<DockerBackendOptions, 'instanceId' | 'pidsLimit' | 'cpu' | 'memoryMb' | 'environment'> & {
    ownNetwork: string;
  },
  reach: SandboxReach,
  engine: EngineFacts,
  createdAt: number,
): ContainerCreateOptions {
  const memory = (launch.memoryMb ?? options.memoryMb) * MEBIBYTE;
  const network = networkOf(launch, options.ownNetwork);
  const ports = [AGENT_PORT, ...Object.values(launch.ports)].map((port) => `${port}/tcp`);
  const { egress } = launch;
  // With no interface but its loopback nothing leaves it, whatever its programs do: neither packets nor names.
  const isClosed = egress?.isOnlyWay === true;
  const env = {
    ...(egress === undefined && proxyVariables(options.environment, launch, false)),
    ...layout.env,
    ...(egress !== undefined && egressVariables(launch, egress, LOOPBACK)),
    ...portVariables(launch.ports, EVERY_ADDRESS),
  };
  return {
    name: sandboxName(launch.id),
    Image: layout.image,
    Cmd: layout.args,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    User: `${AGENT_USER}:${AGENT_USER}`,
    WorkingDir: layout.folder,
    Labels: {
      [INSTANCE_LABEL]: options.instanceId,
      [SANDBOX_LABEL]: launch.id,
      [CREATED_LABEL]: String(createdAt),
      [PORTS_LABEL]: JSON.stringify(launch.ports),
      ...(launch.sessionKey === null && { [WARM_LABEL]: 'true' }),
    },
    OpenStdin: layout.keyOnStdin,
    StdinOnce: layout.keyOnStdin,
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    // The service checks whether it answers; the image's own health check would only cost.
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      ...hardened({ memory, processes: options.pidsLimit }),
      Init: true,
      // Build tools execute what they put there. The size counts as memory of the sandbox.
      Tmpfs: { '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${Math.floor(memory / 2)}` },
      Mounts: volumeMounts(sandboxName(launch.id), layout),
      NanoCpus: Math.round(Math.min(launch.cpu ?? options.cpu, engine.processors) * NANO),
      RestartPolicy: { Name: 'no' },
      ...(launch.runtime !== null && { Runtime: launch.runtime }),
      NetworkMode: isClosed ? 'none' : network,
      ...(reach.by === 'port' &&
        !isClosed && {
          // 0 makes the engine pick a free port.
          PortBindings: Object.fromEntries(
            ports.map((port) => [port, [{ HostIp: reach.hostIp, HostPort: '0' }]]),
          ),
          ...(engine.knowsHostGateway && { ExtraHosts: ['host.docker.internal:host-gateway'] }),
        }),
    },
    ...(launch.network !== null &&
      reach.by === 'name' &&
      !isClosed && {
        NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [sandboxHostName(launch.id)] } } },
      }),
  };
}

/** What keeps any container of ours from the machine. */
export function hardened({ memory, processes }: { memory: number; processes: number }): HostConfig {
  return {
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    ReadonlyRootfs: true,
    PidsLimit: processes,
    Ulimits: [
      { Name: 'nofile', Soft: OPEN_FILES, Hard: OPEN_FILES },
      { Name: 'core', Soft: 0, Hard: 0 },
    ],
    Memory: memory,
    MemorySwap: memory,
    LogConfig: LOG,
  };
}

/** Only the first mount lets the image's folder initialize a new volume. */
function volumeMounts(volume: string, { folder, secondFolder }: SandboxLayout): MountSettings[] {
  const mount: MountSettings = { Type: 'volume', Source: volume, Target: folder };
  const options = { NoCopy: true, Labels: {}, DriverConfig: { Name: '', Options: {} } };
  return secondFolder === null
    ? [mount]
    : [mount, { ...mount, Target: secondFolder, VolumeOptions: options }];
}

/** The specification's network replaces ours, so a service that reaches it by name must be in that one too. */
function networkOf(launch: ProgramLaunch, ownNetwork: string): string {
  if (launch.network !== null && UNUSABLE_NETWORK.test(launch.network)) {
    throw new SandboxBackendError(
      `a sandbox in the network "${launch.network}" could not be reached: the specification must name a bridge network of the engine`,
    );
  }
  return launch.network ?? ownNetwork;
}

/** Lets tools see the image's own variables (`JAVA_HOME`): our agent server passes on only names that it knows. */
export function exposeImageVariables(
  options: ContainerCreateOptions,
  variables: readonly string[],
): ContainerCreateOptions {
  const prefix = `${TOOL_VARIABLES}=`;
  const env = options.Env ?? [];
  const listed = env.find((variable) => variable.startsWith(prefix))?.slice(prefix.length);
  const names = variables
    .map((variable) => variable.split('=', 1)[0] ?? '')
    .filter((name) => name !== '' && !WITHHELD_VARIABLES.test(name));
  return {
    ...options,
    Env: [
      ...env.filter((variable) => !variable.startsWith(prefix)),
      `${prefix}${[...(listed?.split(',') ?? []), ...names].join(',')}`,
    ],
  };
}

/** Adds a read-only mount of our agent server, from `volume`, for an image that has none. */
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
    // The image may name another signal, which would end the server before it has cleaned up.
    StopSignal: 'SIGTERM',
    HostConfig: { ...options.HostConfig, Mounts: [...(options.HostConfig?.Mounts ?? []), mount] },
  };
}

export function hasMountedAgentServer({ Mounts }: Pick<ContainerInspectInfo, 'Mounts'>): boolean {
  return Mounts.some(({ Destination }) => Destination === AGENT_SERVER_FOLDER);
}

/** Whether only its relay leads to it. No label says so, as a container has those of its image too. */
export function hasNoNetwork({ HostConfig }: Pick<ContainerInspectInfo, 'HostConfig'>): boolean {
  return HostConfig.NetworkMode === 'none';
}

/** Never starts: it gives a volume the owner of the folder it is mounted over. Its labels get it removed. */
export function volumeOwner(options: ContainerCreateOptions, image: string): ContainerCreateOptions {
  return {
    ...(options.name !== undefined && { name: options.name }),
    Labels: options.Labels ?? {},
    Image: image,
    HostConfig: { NetworkMode: 'none', Mounts: options.HostConfig?.Mounts ?? [] },
  };
}

/** Epoch milliseconds of the sandbox's first start; set on its volume and on every container made for it. */
export const CREATED_LABEL = 'slipway.created-at';
/** JSON of port numbers inside the container by name. Every container has it, or its image could set another one. */
export const PORTS_LABEL = 'slipway.ports';
/** Marks containers whose agent server gets its session key later. */
export const WARM_LABEL = 'slipway.warm';
export const AGENT_SERVER_LABEL = 'slipway.agent-server';
/** The id of the image that agent server files come from; set on their volumes and on containers that fill these. */
export const AGENT_FILES_LABEL = 'slipway.agent-server-of';

const LOOPBACK = '127.0.0.1';

const RUNNING_STATES = new Set(['running', 'paused', 'restarting']);
/** 128 + SIGKILL, which the kernel sends when a container has used up its memory. */
const KILLED_EXIT_CODE = 137;

export function sandboxName(id: string): string {
  return `slipway-${id}`;
}

/** Name of a sandbox within a network. Host names have no upper case. */
export function sandboxHostName(id: string): string {
  return sandboxName(id).toLowerCase();
}

export type SandboxReach =
  | { by: 'name' }
  /** `hostIp` is where the engine publishes the port; `urlHost` is how an address spells that. */
  | { by: 'port'; hostIp: string; urlHost: string }
  | { by: 'socket'; socket: (id: string, port: number) => string };

/** How the service reaches containers that have a network: by name within one of the engine, or by a published port. */
export function sandboxReach({
  network,
  listenAddress,
}: Pick<DockerBackendOptions, 'network' | 'listenAddress'>): SandboxReach {
  if (network !== null) {
    return { by: 'name' };
  }
  const host = listenAddress ?? LOOPBACK;
  return {
    by: 'port',
    // The engine takes no host names here.
    hostIp: isIP(host) === 0 ? EVERY_ADDRESS : host,
    urlHost: isIPv6(host) ? `[${host}]` : host,
  };
}

export interface InspectedContainer {
  Config: Pick<ContainerInspectInfo['Config'], 'Labels'>;
  State: Pick<ContainerInspectInfo['State'], 'Status' | 'ExitCode' | 'OOMKilled'>;
  NetworkSettings: Pick<ContainerInspectInfo['NetworkSettings'], 'Ports'>;
}

export function isRunning({ State }: InspectedContainer): boolean {
  return RUNNING_STATES.has(State.Status);
}

export function containerFacts(container: InspectedContainer, reach: SandboxReach): SandboxFacts {
  const { Labels } = container.Config;
  const id = Labels[SANDBOX_LABEL] ?? '';
  const createdAt = Number(Labels[CREATED_LABEL]) || null;
  if (!isRunning(container)) {
    return { id, state: 'stopped', address: null, ports: {}, exit: exitOf(container), createdAt };
  }
  // A container made before sandboxes had ports may inherit any text in this label from its image.
  const ports = Object.entries(parsePorts(parseJson(Labels[PORTS_LABEL] ?? ''))).flatMap(([name, port]) => {
    const address = portAddress(container, id, reach, port);
    return address === null ? [] : [[name, address] as const];
  });
  const address = portAddress(container, id, reach, AGENT_PORT);
  return { id, state: 'running', address, ports: Object.fromEntries(ports), exit: null, createdAt };
}

function portAddress(
  { NetworkSettings }: InspectedContainer,
  id: string,
  reach: SandboxReach,
  port: number,
): string | null {
  if (reach.by === 'socket') {
    return `unix:${reach.socket(id, port)}`;
  }
  if (reach.by === 'name') {
    return `http://${sandboxHostName(id)}:${port}`;
  }
  const published = NetworkSettings.Ports[`${port}/tcp`]?.find(({ HostIp }) => HostIp === reach.hostIp);
  return published ? `http://${reach.urlHost}:${published.HostPort}` : null;
}

function exitOf({ State }: InspectedContainer): SandboxExit | null {
  if (State.Status === 'created' && State.ExitCode === 0) {
    return null;
  }
  return {
    code: State.ExitCode,
    signal: null,
    // The engine sets OOMKilled also when a tool was killed for its memory and the agent server lived on.
    outOfMemory: State.OOMKilled && State.ExitCode === KILLED_EXIT_CODE,
  };
}
