import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { parseArgs } from 'node:util';
import { jsonText } from '../common/json-access.js';
import { type AgentServerOptions, DEFAULT_LIMITS } from './agent-server-options.js';
import type { AgentEngine, EngineContext, EngineSurroundings } from './engine/agent-engine.js';
import { log } from './log.js';
import { startAgentServer } from './start-agent-server.js';
import { toolEnvironment } from './tool-environment.js';
import { WEBHOOK_DEFAULTS } from './webhooks/webhook-sender.js';

type ParsedOptions = Pick<
  AgentServerOptions,
  | 'host'
  | 'port'
  | 'portFile'
  | 'conversationsPath'
  | 'bashEventsPath'
  | 'workspace'
  | 'fileRoots'
  | 'webhook'
  | 'corsOrigins'
  | 'toolWrapper'
  | 'maxConcurrentRuns'
> & {
  /** The session key comes as a line of JSON on standard input. */
  secretsOnStdin: boolean;
};

/**
 * Options from the command line, and what it does not name from the environment.
 *
 * @throws TypeError for unknown flags and values that cannot be used
 */
export function parseOptions(args: string[], env: NodeJS.ProcessEnv, cwd: string): ParsedOptions {
  const { values } = parseArgs({
    args,
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8000' },
      'port-file': { type: 'string' },
      'conversations-path': { type: 'string' },
      'bash-events-dir': { type: 'string' },
      workspace: { type: 'string' },
      'file-root': { type: 'string', multiple: true, default: [] },
      'webhook-url': { type: 'string' },
      'tool-wrapper': { type: 'string', default: '[]' },
      'secrets-stdin': { type: 'boolean', default: false },
    },
  });
  const inCwd = (given: string): string => path.resolve(cwd, given);
  const workspace = inCwd(values.workspace ?? env['OH_WORKSPACE_PATH'] ?? 'workspace');
  const inWorkspace = (given: string | undefined, name: string): string =>
    given === undefined ? path.join(workspace, name) : inCwd(given);
  return {
    host: values.host,
    port: toPort(values.port),
    portFile: values['port-file'] === undefined ? null : inCwd(values['port-file']),
    conversationsPath: inWorkspace(
      values['conversations-path'] ?? env['OH_CONVERSATIONS_PATH'],
      'conversations',
    ),
    bashEventsPath: inWorkspace(values['bash-events-dir'] ?? env['OH_BASH_EVENTS_DIR'], 'bash_events'),
    workspace,
    fileRoots: values['file-root'].map(inCwd),
    webhook: toWebhook(values['webhook-url'], env),
    corsOrigins: numbered(env, 'OH_ALLOW_CORS_ORIGINS_'),
    toolWrapper: toWords(values['tool-wrapper']),
    maxConcurrentRuns: toNumber(env['OH_MAX_CONCURRENT_RUNS'], 0) || DEFAULT_LIMITS.maxConcurrentRuns,
    secretsOnStdin: values['secrets-stdin'],
  };
}

/** Values of `NAME_0`, `NAME_1`, …, in that order. */
export function numbered(env: NodeJS.ProcessEnv, prefix: string): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .toSorted((a, b) => Number(a.slice(prefix.length)) - Number(b.slice(prefix.length)))
    .flatMap((name) => env[name] || []);
}

function toWebhook(flag: string | undefined, env: NodeJS.ProcessEnv): AgentServerOptions['webhook'] {
  const baseUrl = flag ?? env['OH_WEBHOOKS_0_BASE_URL'];
  if (!baseUrl) {
    return null;
  }
  if (!/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw new TypeError('the webhook URL must begin with http:// or https://');
  }
  return {
    ...WEBHOOK_DEFAULTS,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    batchSize: toNumber(env['OH_WEBHOOKS_0_EVENT_BUFFER_SIZE'], WEBHOOK_DEFAULTS.batchSize),
    flushDelayMs: toMilliseconds(env['OH_WEBHOOKS_0_FLUSH_DELAY'], WEBHOOK_DEFAULTS.flushDelayMs),
    retries: toNumber(env['OH_WEBHOOKS_0_NUM_RETRIES'], WEBHOOK_DEFAULTS.retries),
    retryDelayMs: toMilliseconds(env['OH_WEBHOOKS_0_RETRY_DELAY'], WEBHOOK_DEFAULTS.retryDelayMs),
  };
}

function toWords(text: string): string[] {
  const words: unknown = JSON.parse(text);
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string')) {
    throw new TypeError('--tool-wrapper must be a JSON array of strings');
  }
  return words;
}

function toPort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TypeError('--port must be a number from 0 to 65535');
  }
  return port;
}

function toNumber(text: string | undefined, otherwise: number): number {
  const number = Number(text);
  return text && Number.isFinite(number) && number >= 0 ? number : otherwise;
}

function toMilliseconds(seconds: string | undefined, otherwise: number): number {
  return toNumber(seconds, otherwise / 1000) * 1000;
}

const KEY_VARIABLE = /^(OH_SESSION_API_KEYS_\d+|SESSION_API_KEY)$/;

/**
 * The session key from one line of JSON, `{"session_api_key":"…"}`. Unlike variables and arguments, no other process
 * can read it afterwards.
 *
 * @throws Error when there is no such line
 */
export async function readSessionKey(input: Readable): Promise<string> {
  const lines = createInterface({ input });
  try {
    for await (const line of lines) {
      const key = keyIn(line);
      if (key !== null) {
        return key;
      }
      break;
    }
  } finally {
    lines.close();
    input.destroy();
  }
  throw new Error('standard input must begin with a line of JSON that has a session_api_key');
}

/** The session keys in the environment, where the stock server has them; they are removed from it. */
export function takeSessionKeys(env: NodeJS.ProcessEnv): string[] {
  const single = env['SESSION_API_KEY'];
  const keys = [...numbered(env, 'OH_SESSION_API_KEYS_'), ...(single ? [single] : [])];
  for (const name of Object.keys(env).filter((variable) => KEY_VARIABLE.test(variable))) {
    Reflect.deleteProperty(env, name);
  }
  return keys;
}

function keyIn(line: string): string | null {
  try {
    return jsonText(JSON.parse(line), 'session_api_key');
  } catch {
    return null;
  }
}

/** Makes engines, knowing the server's options. */
type EngineFactory = (context: EngineContext, surroundings: EngineSurroundings) => Promise<AgentEngine>;

/** The whole life of the process: options and secrets in, serve, stop when told to. */
export async function runAgentServer(createEngine: EngineFactory): Promise<void> {
  const { secretsOnStdin, ...options } = parseOptions(process.argv.slice(2), process.env, process.cwd());
  const fromEnvironment = takeSessionKeys(process.env);
  const sessionKeys = secretsOnStdin ? [await readSessionKey(process.stdin)] : fromEnvironment;
  const known = { ...options, sessionKeys, environment: toolEnvironment(process.env) };
  const server = await startAgentServer({
    ...DEFAULT_LIMITS,
    ...known,
    createEngine: (context) => createEngine(context, known),
  });
  log('info', 'listening', {
    host: options.host,
    port: server.port,
    startedInMs: Math.round(process.uptime() * 1000),
  });
  await stopSignal();
  log('info', 'stopping');
  await server.stop();
  log('info', 'stopped');
}

async function stopSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
