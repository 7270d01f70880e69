import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '../../test/support/service-process.js';
import { freePort, isServed, untilTrue } from './fixtures.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A service started by `npm start`. */
interface NpmStart {
  /** Milliseconds from the spawn of npm to the first 200 of `/health/ready`. */
  readyMs: number;
  /** The service's own process. */
  pid: number;
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
  await untilTrue(() => {
    if (npm.exitCode !== null) {
      throw new Error('npm start ended before the service was ready');
    }
    return isServed(`http://127.0.0.1:${port}/health/ready`);
  }, 'npm start');
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
