import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { jsonNumber, jsonText } from '@slipway/common/json-access.js';

const ENTRY = fileURLToPath(new URL('../../dist/service/main.js', import.meta.url));
/** The one that `npm start` uses. */
const COMPILE_CACHE = fileURLToPath(new URL('../../dist/.compile-cache', import.meta.url));
/** The same as `npm start` sets. */
const YOUNG_GENERATION = '--max-semi-space-size=4';
/** What a process needs of its surroundings; no variable of the service is among them. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'USER'];
/** Then the file, and the command with its arguments. */
const WITH_HOSTS = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"'];
const LINES_SHOWN = 50;

/** The built service, running as a process of its own. */
export interface ServiceProcess {
  pid: number;
  /** `http://127.0.0.1:PORT`. */
  url: string;
  /** Everything that it has printed so far, line by line. */
  log: readonly string[];
  /** Whether it has not ended yet. */
  isRunning(): boolean;
  /** Sends it a message over its channel; resolves to a member of its answer. */
  ask(member: string, message: object): Promise<string>;
  /** Asks it to stop and waits until it is gone. */
  stop(): Promise<void>;
}

export interface ServiceProcessOptions {
  /** Working directory: an `.env` file in it would count. */
  cwd: string;
  /** Variables of the service; nothing else of it is inherited. */
  environment: Record<string, string>;
  /** Whether there is a channel for messages to it. */
  hasChannel?: boolean;
  /** Arguments of Node itself (`--cpu-prof`). */
  nodeArgs?: string[];
  /** A file that it and its children see in the place of `/etc/hosts`; needs root. */
  hostsFile?: string;
  /** Gets the process id at once, so that a test may end it before it listens. */
  onSpawn?: (pid: number) => void;
}

/**
 * Starts the built service (`dist/service/main.js`) and waits until it listens.
 *
 * @throws Error with the last lines that it printed when it ends before that
 */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  const node = [process.execPath, YOUNG_GENERATION, ...(options.nodeArgs ?? []), ENTRY];
  const [program = '', ...args] = options.hostsFile ? [...WITH_HOSTS, options.hostsFile, ...node] : node;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: {
      ...inheritedEnvironment(),
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      PORT: '0',
      LOG_FORMAT: 'json',
      ...options.environment,
    },
    stdio: ['ignore', 'pipe', 'pipe', options.hasChannel ? 'ipc' : 'ignore'],
    // Away from the terminal's process group: Ctrl-C is for us, and we stop the service once.
    detached: true,
  });
  const killChild = () => child.kill();
  process.once('exit', killChild);
  const ended = once(child, 'exit').finally(() => process.off('exit', killChild));
  const log: string[] = [];
  options.onSpawn?.(child.pid ?? 0);
  const port = await listeningPort(child, ended, log);
  return {
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}`,
    log,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    ask: async (member, message) => {
      const answered = once(child, 'message');
      child.send(message);
      const [answer]: unknown[] = await answered;
      return jsonText(answer, member) ?? '';
    },
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** The environment that a child process gets of ours. */
export function inheritedEnvironment(): Record<string, string> {
  return Object.fromEntries(
    INHERITED.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

async function listeningPort(child: ChildProcess, ended: Promise<unknown>, log: string[]): Promise<number> {
  const listening = new Promise<number>((resolve) => {
    // Read to the end, so that the service never waits for its log to be read.
    for (const stream of [child.stdout, child.stderr]) {
      if (stream) {
        createInterface({ input: stream }).on('line', (line) => {
          log.push(line);
          const port = portOf(line);
          if (port !== null) {
            resolve(port);
          }
        });
      }
    }
  });
  const failed = ended.then((): never => {
    throw new Error(
      `${path.basename(ENTRY)} ended before it listened:\n${log.slice(-LINES_SHOWN).join('\n')}`,
    );
  });
  return await Promise.race([listening, failed]);
}

function portOf(line: string): number | null {
  if (!line.startsWith('{')) {
    return null;
  }
  const entry: unknown = JSON.parse(line);
  return jsonText(entry, 'message') === 'listening' ? jsonNumber(entry, 'port') : null;
}
