import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { connectEngine } from '../src/v1/sandboxes/backends/docker/connect-engine.js';
import { INSTANCE_LABEL } from '../src/v1/sandboxes/backends/docker/sandbox-names.js';

/** Of an engine on this machine, unless it was told otherwise. */
const BRIDGE = 'docker0';

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
export function demoBackend(): DemoBackend {
  return process.env['SANDBOX_BACKEND'] === 'docker' ? containers() : processes();
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

function containers(): DemoBackend {
  const host = networkInterfaces()[BRIDGE]?.find(({ family }) => family === 'IPv4')?.address;
  if (host === undefined) {
    throw new Error(
      `SANDBOX_BACKEND=docker: this machine has no network ${BRIDGE} for containers to reach the stand-ins by; the demonstration needs a Docker engine on this machine, with its default network`,
    );
  }
  const dockerHost = process.env['DOCKER_HOST'] ?? null;
  const engine = connectEngine(dockerHost);
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
