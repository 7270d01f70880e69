import path from 'node:path';
import type { Readable } from 'node:stream';
import { parseArgs } from 'node:util';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { parseAlias, parseWorkspaceName, type WorkspaceName } from './tool-view.js';
import { parseRelay, type Relay } from './port-relay.js';
import { WEBHOOK_DEFAULTS } from './webhooks/webhook-sender.js';
import type { CreateEngine, EngineServerOptions } from './engine/agent-engine.js';

const KEY_LINE = 'standard input must begin with a line of JSON that has a session_api_key';
/** Far longer than any key: a sender of more is not the service. */
const MAX_KEY_LINE_BYTES = 16 * 1024;
const SESSION_KEY_VARIABLE = /^(OH_SESSION_API_KEYS_\d+|SESSION_API_KEY)$/;

type ParsedOptions = Omit<
  AgentServerOptions,
  'sessionKeys' | 'environment' | 'createEngine' | Exclude<keyof ServerLimits, 'maxConcurrentRuns'>
> & {
  secretsOnStdin: boolean;
  workspaceName: WorkspaceName | null;
};

/** Reads the command line, then the environment. @throws TypeError for unknown flags and invalid values */
export function parseOptions(args: string[], env: NodeJS.ProcessEnv, cwd: string): ParsedOptions {
  const { values } = parseArgs({
    args,
    // An image sets flags that the person who starts it may negate: `--no-secrets-stdin`.
    allowNegative: true,
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8000' },
      socket: { type: 'string' },
      relay: { type: 'string', multiple: true, default: [] },
      'await-network': { type: 'boolean', default: false },
      'conversations-path': { type: 'string' },
      'bash-events-dir': { type: 'string' },
      workspace: { type: 'string' },
      'file-root': { type: 'string', multiple: true, default: [] },
      alias: { type: 'string', multiple: true, default: [] },
      'webhook-url': { type: 'string' },
      'tool-wrapper': { type: 'string', default: '[]' },
      'secrets-stdin': { type: 'boolean', default: false },
    },
  });
  const inCwd = (file: string): string => path.resolve(cwd, file);
  const workspace = inCwd(values.workspace ?? env['OH_WORKSPACE_PATH'] ?? 'workspace');
  const inWorkspace = (folder: string | undefined, name: string): string =>
    folder === undefined ? path.join(workspace, name) : inCwd(folder);
  return {
    host: values.host,
    port: toPort(values.port),
    socket: values.socket === undefined ? null : inCwd(values.socket),
    relays: values.relay.map(parseRelay),
    awaitNetwork: values['await-network'],
    conversationsPath: inWorkspace(
      values['conversations-path'] ?? env['OH_CONVERSATIONS_PATH'],
      'conversations',
    ),
    bashEventsPath: inWorkspace(values['bash-events-dir'] ?? env['OH_BASH_EVENTS_DIR'], 'bash_events'),
    workspace,
    fileRoots: values['file-root'].map(inCwd),
    aliases: values.alias.map(parseAlias),
    webhook: toWebhook(values['webhook-url'], env),
    corsOrigins: numberedVariables(env, 'OH_ALLOW_CORS_ORIGINS_'),
    toolWrapper: toStrings(values['tool-wrapper']),
    maxConcurrentRuns: Math.max(0, Number(env['OH_MAX_CONCURRENT_RUNS'])) || DEFAULT_LIMITS.maxConcurrentRuns,
    secretsOnStdin: values['secrets-stdin'],
    // A variable and not a flag, because images with an earlier agent server would not start with an unknown flag.
    workspaceName: parseWorkspaceName(env['SLIPWAY_WORKSPACE_NAME']),
  };
}

/**
 * Reads the session key from one line of JSON, `{"session_api_key":"…"}`, which may come much later. Unlike a
 * variable or an argument, no other process can read it afterwards.
 * @throws Error when the first line is something else, or the input ends before it
 */
export async function readSessionKey(input: Readable): Promise<string> {
  const key = jsonText(parseJson(await readLine(input)), 'session_api_key');
  if (key === null) {
    throw new Error(`${KEY_LINE}, and began with something else`);
  }
  return key;
}

/** Leaving the loop closes the input. */
async function readLine(input: Readable): Promise<string> {
  let read = Buffer.alloc(0);
  for await (const chunk of input) {
    read = Buffer.concat([read, Buffer.from(chunk)]);
    const end = read.indexOf('\n');
    const line = end === -1 ? read : read.subarray(0, end);
    if (line.length > MAX_KEY_LINE_BYTES) {
      throw new Error(`${KEY_LINE} of at most ${MAX_KEY_LINE_BYTES} bytes, and began with a longer one`);
    }
    if (end !== -1) {
      return line.toString('utf8');
    }
  }
  if (read.length === 0) {
    throw new Error(`${KEY_LINE}, and ended without one`);
  }
  return read.toString('utf8');
}

/** Removes the session keys from the environment, where the stock server expects them, and returns them. */
export function takeSessionKeys(env: NodeJS.ProcessEnv): string[] {
  const single = env['SESSION_API_KEY'];
  const keys = [...numberedVariables(env, 'OH_SESSION_API_KEYS_'), ...(single ? [single] : [])];
  for (const name of Object.keys(env).filter((variable) => SESSION_KEY_VARIABLE.test(variable))) {
    Reflect.deleteProperty(env, name);
  }
  return keys;
}

export function numberedVariables(env: NodeJS.ProcessEnv, prefix: string): string[] {
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
  return { ...WEBHOOK_DEFAULTS, baseUrl: baseUrl.replace(/\/+$/, '') };
}

function toStrings(text: string): string[] {
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    throw new TypeError('--tool-wrapper must be a JSON array of strings');
  }
  return value;
}

function toPort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TypeError('--port must be a number from 0 to 65535');
  }
  return port;
}

export interface ListenOptions {
  /** The Unix socket to listen on; null means host and port. */
  socket: string | null;
  relays: readonly Relay[];
  /** Whether its network is connected beside its start, so that requests have to wait for it. */
  awaitNetwork: boolean;
  host: string;
  port: number;
}

export interface AgentServerOptions extends EngineServerOptions, ListenOptions, ServerLimits {
  bashEventsPath: string;
  workspace: string;
  /** Further folders that clients may read and write, besides `/tmp`. */
  fileRoots: string[];
  corsOrigins: string[];
  createEngine: CreateEngine;
}

interface ServerLimits {
  maxUploadBytes: number;
  maxConcurrentRuns: number;
  /** How long a tool that is running may go on when its user pauses the conversation. */
  pauseGraceMs: number;
  stopGraceMs: number;
  sockets: SocketLimits;
}

export interface SocketLimits {
  authTimeoutMs: number;
  pingMs: number;
  /** A client that reads nothing for this long is dropped. */
  stallMs: number;
  /** Per conversation. */
  maxSubscribers: number;
}

export const DEFAULT_LIMITS: ServerLimits = {
  maxUploadBytes: 1024 * 1024 * 1024,
  maxConcurrentRuns: 10,
  pauseGraceMs: 10_000,
  stopGraceMs: 3_000,
  sockets: { authTimeoutMs: 10_000, pingMs: 30_000, stallMs: 30_000, maxSubscribers: 100 },
};
