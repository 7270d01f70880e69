import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment, YOUNG_GENERATION } from '../../test/support/service-process.js';
import { freePort } from './fixtures.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUNNER = fileURLToPath(new URL('../../scripts/run-typescript.mjs', import.meta.url));
const BASELINES = new URL('../baseline/', import.meta.url);
const POLL_MS = 5;

/** A service started by `npm start`. */
interface NpmStart {
  /** From the spawn of npm to the first 200 of `/health/ready`, milliseconds. */
  readyMs: number;
  /** The service's own process. */
  pid: number;
  stop(): Promise<void>;
}

/** A hand-written baseline, as a process of its own. */
interface Baseline {
  pid: number;
  url: string;
  stop(): Promise<void>;
}

/** Runs `npm start` on a data folder and waits until the service is ready. */
export async function npmStart(dataDir: string): Promise<NpmStart> {
  const port = await freePort();
  const startedAt = performance.now();
  const npm = spawn('npm', ['start'], {
    cwd: ROOT,
    env: {
      ...inheritedEnvironment(),
      PORT: `${port}`,
      DATA_DIR: path.resolve(dataDir),
      DATABASE_URL: '',
      LOG_FORMAT: 'json',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(npm, 'exit');
  while (!(await isReady(port))) {
    if (npm.exitCode !== null) {
      throw new Error('npm start ended before the service was ready');
    }
    await delay(POLL_MS);
  }
  const readyMs = performance.now() - startedAt;
  return {
    readyMs,
    // npm's shell has replaced itself by the service.
    pid: Number(execFileSync('pgrep', ['-P', `${npm.pid}`], { encoding: 'utf8' })),
    stop: async () => {
      npm.kill('SIGTERM');
      await ended;
    },
  };
}

async function isReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/health/ready`, {
      headers: { connection: 'close' },
    });
    await response.arrayBuffer();
    return response.status === 200;
  } catch (error) {
    // fetch's error for a refused connection.
    if (error instanceof TypeError) {
      return false;
    }
    throw error;
  }
}

/** Starts a program of `baseline`, with the young generation of the service, and waits until it listens. */
export async function startBaseline(name: string, environment: Record<string, string>): Promise<Baseline> {
  const program = fileURLToPath(new URL(name, BASELINES));
  const child = spawn(
    process.execPath,
    [YOUNG_GENERATION, '--disable-warning=ExperimentalWarning', RUNNER, program],
    {
      env: { ...inheritedEnvironment(), ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const killChild = () => child.kill();
  process.once('exit', killChild);
  const ended = once(child, 'exit').finally(() => process.off('exit', killChild));
  const port = await Promise.race([
    once(child.stdout, 'data').then(([chunk]) => String(chunk).trim()),
    ended.then((): never => {
      throw new Error('the baseline ended before it listened');
    }),
  ]);
  return {
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
