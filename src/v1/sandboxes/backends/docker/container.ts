import { isIP, isIPv6 } from 'node:net';
import path from 'node:path';
import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode';
import { proxyVariables } from '../launch-variables.js';
import {
  parsePorts,
  portVariables,
  SandboxBackendError,
  type SandboxExit,
  type SandboxFacts,
  type SandboxLaunch,
} from '../sandbox-backend.js';
import type { DockerBackendOptions } from './docker-options.js';
import type { EngineFacts } from './engine.js';

/** How the service gets to the agent server in a container. */
export type SandboxReach =
  /** Both are in one network of the engine. */
  | { by: 'name' }
  /** `hostIp`: where the engine publishes the port; `urlHost`: how that is written in an address. */
  | { by: 'port'; hostIp: string; urlHost: string };

const LOOPBACK = '127.0.0.1';
const EVERY_ADDRESS = '0.0.0.0';

/** Decides how containers are reached. */
export function sandboxReach({
  network,
  listenAddress,
}: Pick<DockerBackendOptions, 'network' | 'listenAddress'>): SandboxReach {
  if (network !== null) {
    return { by: 'name' };
  }
  const host = listenAddress ?? LOOPBACK;
  // The engine takes no names.
  return {
    by: 'port',
    hostIp: isIP(host) === 0 ? EVERY_ADDRESS : host,
    urlHost: isIPv6(host) ? `[${host}]` : host,
  };
}

/** Which installation a container or volume belongs to. */
export const INSTANCE_LABEL = 'slipway.instance';
/** Which sandbox it is. */
export const SANDBOX_LABEL = 'slipway.sandbox-id';
/** Epoch milliseconds of the sandbox's first start; its volume has it from then on, and each container that is made. */
export const CREATED_LABEL = 'slipway.created-at';
/** The ports of what agents start, JSON: numbers inside the container by name. Each container has it, or its image could have another one. */
const PORTS_LABEL = 'slipway.ports';
/** Carried by images that have our agent server. */
export const AGENT_SERVER_LABEL = 'slipway.agent-server';
/** Of volumes that have the files of our agent server, and of what fills them: the id of the image that they are of. */
export const AGENT_FILES_LABEL = 'slipway.agent-server-of';

/** Name of a sandbox's container, and of its volume. */
export function sandboxName(id: string): string {
  return `slipway-${id}`;
}

/** Name of a sandbox within a network. Addresses have no upper case. */
function sandboxHostName(id: string): string {
  return sandboxName(id).toLowerCase();
}

/** Where agent servers listen inside their containers. */
const AGENT_PORT = 8000;

const ALIVE = new Set(['running', 'paused', 'restarting']);
/** 128 + SIGKILL, which the kernel sends when a container has used up its memory. */
const KILLED = 137;

/** What is read of the engine's answer. */
export interface InspectedContainer {
  Config: Pick<ContainerInspectInfo['Config'], 'Labels'>;
  State: Pick<ContainerInspectInfo['State'], 'Status' | 'ExitCode' | 'OOMKilled'>;
  NetworkSettings: Pick<ContainerInspectInfo['NetworkSettings'], 'Ports'>;
}

/** Reads an inspected container. */
export function containerFacts(container: InspectedContainer, reach: SandboxReach): SandboxFacts {
  const id = container.Config.Labels[SANDBOX_LABEL] ?? '';
  const isRunning = ALIVE.has(container.State.Status);
  return {
    id,
    state: isRunning ? 'running' : 'stopped',
    address: isRunning ? address(container, id, reach, AGENT_PORT) : null,
    ports: isRunning ? addresses(container, id, reach) : {},
    exit: isRunning ? null : exitOf(container),
    createdAt: Number(container.Config.Labels[CREATED_LABEL]) || null,
  };
}

function addresses(container: InspectedContainer, id: string, reach: SandboxReach): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parsePorts(parsed(container.Config.Labels[PORTS_LABEL]))).flatMap(([name, port]) => {
      const url = address(container, id, reach, port);
      return url === null ? [] : [[name, url]];
    }),
  );
}

/** Of a container that was made before there were ports, the image may have any. */
function parsed(label: string | undefined): unknown {
  try {
    return JSON.parse(label ?? '');
  } catch {
    return null;
  }
}

function address(
  { NetworkSettings }: InspectedContainer,
  id: string,
  reach: SandboxReach,
  port: number,
): string | null {
  if (reach.by === 'name') {
    return `http://${sandboxHostName(id)}:${port}`;
  }
  const published = NetworkSettings.Ports[`${port}/tcp`]?.find(({ HostIp }) => HostIp === reach.hostIp);
  return published ? `http://${reach.urlHost}:${published.HostPort}` : null;
}

/** Null when it never ran. The engine tells no signals apart from codes above 128. */
function exitOf({ State }: InspectedContainer): SandboxExit | null {
  if (State.Status === 'created' && State.ExitCode === 0) {
    return null;
  }
  return {
    code: State.ExitCode,
    signal: null,
    // The engine also notes when a tool was ended for its memory and the agent server lived on.
    outOfMemory: State.OOMKilled && State.ExitCode === KILLED,
  };
}

/** What the image is told when it starts. */
interface SandboxLayout {
  image: string;
  /** Where the sandbox's volume is mounted. */
  folder: string;
  /** Undefined: what the image itself says. */
  args: string[] | undefined;
  env: Record<string, string>;
  /** The session key comes on standard input. */
  keyOnStdin: boolean;
}

/**
 * Where things are inside a container, and how its agent server is told.
 *
 * Our own image gets its session key on standard input. A stock agent server (openhands.agent_server) knows no other
 * way than its environment, which its tools and whoever may inspect the container can read.
 *
 * @throws SandboxBackendError when the program or its working folder cannot be had in a container
 */
export function sandboxLayout(launch: SandboxLaunch, defaultImage: string): SandboxLayout {
  const { program } = launch;
  switch (program.kind) {
    case 'native': {
      const folder = '/sandbox';
      const args = [
        ['--workspace', inside(folder, launch.workingDir)],
        ['--conversations-path', `${folder}/conversations`],
        ['--bash-events-dir', `${folder}/bash_events`],
      ].flat();
      const env = { ...launch.env, HOME: `${folder}/home`, ...webhooks(launch) };
      return { image: program.image ?? defaultImage, folder, args, env, keyOnStdin: true };
    }
    case 'image': {
      const folder = '/workspace';
      inside(folder, launch.workingDir);
      const args = program.args.map((arg) => arg.replaceAll('{port}', String(AGENT_PORT)));
      const env = {
        HOME: folder,
        OH_ENABLE_VNC: '0',
        OH_CONVERSATIONS_PATH: `${folder}/conversations`,
        OH_BASH_EVENTS_DIR: `${folder}/bash_events`,
        ...launch.env,
        PORT: String(AGENT_PORT),
        OH_SESSION_API_KEYS_0: launch.sessionKey,
        ...webhooks(launch),
      };
      return {
        image: program.image,
        folder,
        args: args.length === 0 ? undefined : args,
        env,
        keyOnStdin: false,
      };
    }
    case 'command':
      throw new SandboxBackendError(
        'this specification starts a command, which runs in process sandboxes only; with SANDBOX_BACKEND=docker it needs an image',
      );
  }
}

function webhooks({ callbackUrl }: SandboxLaunch): Record<string, string> {
  return callbackUrl === null ? {} : { OH_WEBHOOKS_0_BASE_URL: callbackUrl };
}

/** Only the volume can be written to, and only it is there after a pause. */
function inside(folder: string, workingDir: string): string {
  const resolved = path.posix.resolve(folder, workingDir);
  if (resolved !== folder && !resolved.startsWith(`${folder}/`)) {
    throw new SandboxBackendError(
      `the working folder ${workingDir} of this specification is not kept: it must be relative or lie in ${folder}`,
    );
  }
  return resolved;
}

const MEBIBYTE = 1024 * 1024;
const NANO = 1e9;
/** Of the agent image; nobody else's in the images of others. */
const USER = '10001:10001';
const LOG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } };
/** The sandbox would be the host's, nobody's or another container's neighbour. */
const UNUSABLE_NETWORK = /^(host|none|container:.*)$/;

/** A container for a sandbox: everything it may not do, and the little that it may. */
export function containerOptions(
  launch: SandboxLaunch,
  layout: SandboxLayout,
  options: Pick<
    DockerBackendOptions,
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

const LIST = 'SLIPWAY_TOOL_VARIABLES=';
/** For our agent server itself and not for tools, or not for anybody to read. */
const KEPT_BACK = /^(NODE_|LD_|OH_|SLIPWAY_)|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;

/**
 * Lets tools have what the image says of itself (`JAVA_HOME`, `RUSTUP_HOME`): our agent server hands on to them what it
 * knows by name, and what this list names.
 *
 * @param variables of the image, as `NAME=value`
 */
export function exposeImageVariables(
  options: ContainerCreateOptions,
  variables: readonly string[],
): ContainerCreateOptions {
  const own = options.Env ?? [];
  const before = own.find((variable) => variable.startsWith(LIST))?.slice(LIST.length);
  const names = variables
    .map((variable) => variable.split('=', 1)[0] ?? '')
    .filter((name) => name !== '' && !KEPT_BACK.test(name));
  const listed = [...(before?.split(',') ?? []), ...names];
  return {
    ...options,
    Env: [...own.filter((variable) => !variable.startsWith(LIST)), `${LIST}${listed.join(',')}`],
  };
}
