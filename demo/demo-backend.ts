import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import ipaddr from 'ipaddr.js';
import { jsonList, jsonText } from '../src/common/json-access.js';
import { connectEngine } from '../src/v1/sandboxes/backends/docker/engine.js';
import { INSTANCE_LABEL } from '../src/v1/sandboxes/backends/docker/container.js';

/** Where the sandboxes of the demonstration run. */
export interface DemoBackend {
  /** Variables of the service. */
  environment: Record<string, string>;
  /** Address of this machine that sandboxes reach. */
  host: string;
  /** How many sandboxes are there still, running or not. */
  left(dataDir: string): Promise<number>;
}

/**
 * The backend that `SANDBOX_BACKEND` names, `process` by default.
 *
 * @throws Error when containers would not reach this machine
 */
export async function demoBackend(): Promise<DemoBackend> {
  return process.env['SANDBOX_BACKEND'] === 'docker' ? await containers() : processes();
}

function processes(): DemoBackend {
  return {
    environment: {},
    host: '127.0.0.1',
    left: async (dataDir) => {
      const folder = path.join(dataDir, 'sandboxes');
      return existsSync(folder) ? (await readdir(folder)).length : 0;
    },
  };
}

async function containers(): Promise<DemoBackend> {
  const dockerHost = process.env['DOCKER_HOST'] ?? null;
  const engine = connectEngine(dockerHost);
  const bridge: unknown = await engine.getNetwork('bridge').inspect();
  const host = hostAddress(jsonList(bridge, 'IPAM', 'Config')[0]);
  if (host === null) {
    throw new Error(
      'SANDBOX_BACKEND=docker: containers would not reach the stand-ins; the demonstration needs a Docker engine on this machine, with its default network',
    );
  }
  const instance = `slipway-demo-${process.pid}`;
  return {
    environment: {
      SANDBOX_BACKEND: 'docker',
      INSTANCE_ID: instance,
      ...(dockerHost !== null && { DOCKER_HOST: dockerHost }),
    },
    host,
    left: async () => {
      const filters = { label: [`${INSTANCE_LABEL}=${instance}`] };
      const found = await engine.listContainers({ all: true, filters });
      const { Volumes: volumes } = await engine.listVolumes({ filters: JSON.stringify(filters) });
      return found.length + volumes.length;
    },
  };
}

/** Where this machine is in a network of the engine: its gateway, by default the first address. */
function hostAddress(config: unknown): string | null {
  const subnet = jsonText(config, 'Subnet') ?? '';
  const gateway = jsonText(config, 'Gateway');
  if (gateway !== null || !ipaddr.IPv4.isValidCIDR(subnet)) {
    return gateway;
  }
  const octets = ipaddr.IPv4.networkAddressFromCIDR(subnet).octets;
  return octets.with(3, (octets[3] ?? 0) + 1).join('.');
}
