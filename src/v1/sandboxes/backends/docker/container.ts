import { isIP, isIPv6 } from 'node:net';
import type { ContainerInspectInfo } from 'dockerode';
import { parseJson } from '@slipway/common/json-access.js';
import { AGENT_PORT, EVERY_ADDRESS, SANDBOX_LABEL } from '../container-layout.js';
import { parsePorts, type SandboxExit, type SandboxFacts } from '../sandbox-backend.js';
import type { DockerBackendOptions } from './docker-options.js';

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
  | { by: 'port'; hostIp: string; urlHost: string };

/** How the service reaches containers: by name within a network of the engine, or by a published port. */
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
