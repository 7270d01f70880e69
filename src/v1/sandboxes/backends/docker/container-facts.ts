import type { ContainerInspectInfo } from 'dockerode';
import { portNumbers } from '../port-numbers.js';
import type { SandboxExit, SandboxFacts } from '../sandbox-backend.js';
import type { SandboxReach } from './sandbox-reach.js';
import { CREATED_LABEL, PORTS_LABEL, SANDBOX_LABEL, sandboxHostName } from './sandbox-names.js';

/** Where agent servers listen inside their containers. */
export const AGENT_PORT = 8000;

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
    Object.entries(portNumbers(parsed(container.Config.Labels[PORTS_LABEL]))).flatMap(([name, port]) => {
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
