import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { ClientCache } from '../../test/clients/support/client-cache.js';
import { inheritedEnvironment } from '../../test/support/service-process.js';
import { freePort, isServed, untilTrue } from './fixtures.js';
import { print } from './report.js';

const run = promisify(execFile);
const PACKAGE = 'openhands-ai==1.11.0';
/** The oldest minor version of Python 3 that it runs on. */
const PYTHON = 12;
const START_TIMEOUT_MS = 300_000;
const POLL_MS = 50;
/**
 * Tells the peer that it is in no container: in one, it looks for its sandboxes at another host, but those that are
 * processes are at its own. Everything else is as published.
 */
const PROGRAM = `
import sys
from openhands.app_server.utils import docker_utils
docker_utils.is_running_in_docker = lambda: False
import uvicorn
uvicorn.run('openhands.app_server.app:app', host='127.0.0.1', port=int(sys.argv[1]), log_level='warning')
`;
const ENVIRONMENT = {
  RUNTIME: 'process',
  SERVE_FRONTEND: 'false',
  TZ: 'UTC',
  LOG_LEVEL: 'WARNING',
  // The peer would otherwise ask the network for prices while it loads.
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  OPENHANDS_SUPPRESS_BANNER: '1',
};

/** The peer's server, with sandboxes that are processes. */
export interface PeerServer {
  url: string;
  /** Milliseconds from the spawn of Python to the first 200 of `/health`. */
  readyMs: number;
  /** Ends it with all its sandboxes. */
  stop(): Promise<void>;
}

/**
 * Installs the peer's server into the cache of `npm run test:clients`, where it stays.
 *
 * @returns its Python
 * @throws NotInstallable with the reason
 */
export async function installPeer(): Promise<string> {
  const folder = process.env['CLIENTS_CACHE'] ?? path.join(tmpdir(), 'slipway-clients');
  const cache = new ClientCache(path.resolve(folder), (line) => print(`  ${line}`));
  const python = path.join(await cache.pythonPackages('peer', [PACKAGE], PYTHON), 'python');
  // It gives a sandbox 30 s to start, which is too little while Python still compiles.
  await run(python, ['-c', 'import openhands.app_server.app, openhands.agent_server.api'], {
    env: { ...inheritedEnvironment(), ...ENVIRONMENT, HOME: tmpdir() },
  });
  return python;
}

/** Starts the peer's server on a folder and waits until it is healthy. */
export async function startPeer(python: string, folder: string): Promise<PeerServer> {
  await mkdir(folder, { recursive: true });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const startedAt = performance.now();
  const child = spawn(python, ['-c', PROGRAM, `${port}`], {
    cwd: folder,
    env: {
      ...inheritedEnvironment(),
      ...ENVIRONMENT,
      PATH: `${path.dirname(python)}${path.delimiter}${process.env['PATH'] ?? ''}`,
      HOME: folder,
      TMPDIR: folder,
      OH_PERSISTENCE_DIR: path.join(folder, 'persistence'),
    },
    stdio: 'ignore',
    // The sandboxes are in the same process group, and end with it.
    detached: true,
  });
  const ended = once(child, 'exit');
  await once(child, 'spawn');
  const group = -(child.pid ?? 0);
  const killGroup = (): void => {
    try {
      process.kill(group, 'SIGKILL');
    } catch (error) {
      // No process of the group is left.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) {
        throw error;
      }
    }
  };
  process.once('exit', killGroup);
  const stop = async (): Promise<void> => {
    process.off('exit', killGroup);
    killGroup();
    await ended;
  };
  await untilTrue(
    async () => {
      if (child.exitCode !== null) {
        throw new Error("the peer's server ended before it was healthy");
      }
      return isServed(`${url}/health`);
    },
    "the peer's server",
    POLL_MS,
    START_TIMEOUT_MS,
  ).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { url, readyMs: performance.now() - startedAt, stop };
}
