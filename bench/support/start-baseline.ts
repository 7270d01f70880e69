import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '../../test/support/service-process.js';

const RUNNER = fileURLToPath(new URL('../../scripts/run-typescript.mjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../baseline/express-pg.ts', import.meta.url));

/** The hand-written program, running as a process of its own. */
export interface Baseline {
  pid: number;
  url: string;
  stop(): Promise<void>;
}

/** Starts the baseline with its variables and waits until it listens. */
export async function startBaseline(environment: Record<string, string>): Promise<Baseline> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', RUNNER, PROGRAM], {
    env: { ...inheritedEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
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
