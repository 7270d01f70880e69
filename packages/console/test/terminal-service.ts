import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '../../../test/support/service-process.js';
import { until } from '../../../test/support/until.js';

const START = fileURLToPath(new URL('../../../scripts/start.mjs', import.meta.url));
const CTRL_C = '\u0003';
/** Requires a character after the link, because it may arrive in pieces. */
const LINK = /http:\/\/localhost:\d+\/console\/#code=[\w-]+(?=[^\w-])/;

/** A service that was started as by hand, in a folder of its own. */
export interface TerminalService {
  /** The one-time link that it has printed. */
  link: string;
  stop(): Promise<void>;
}

/** Only on a terminal does a start print a link with a code; script(1) makes one. */
export async function startAtTerminal(): Promise<TerminalService> {
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-terminal-'));
  // Under root, PostgreSQL runs as another user, who needs access to folders below this one.
  await chmod(folder, 0o711);
  const child = spawn('script', ['-qfec', `exec '${process.execPath}' '${START}'`, '/dev/null'], {
    cwd: folder,
    env: { ...inheritedEnvironment(), PORT: '0', DATA_DIR: path.join(folder, 'data') },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  await until(() => LINK.test(screen) || child.exitCode !== null);
  const [link] = LINK.exec(screen) ?? [];
  if (link === undefined) {
    throw new Error(`the start ended without a link:\n${screen}`);
  }
  return {
    link,
    stop: async () => {
      child.stdin.write(CTRL_C);
      await ended;
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
