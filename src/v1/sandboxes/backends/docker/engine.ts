import Docker from 'dockerode';
import { jsonNumber, jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.js';

/** Where an engine is, as the client library wants it. */
interface EngineEndpoint {
  socketPath: string | undefined;
  host: string | undefined;
  port: number | undefined;
  protocol?: 'https';
}

const SOCKET = /^(unix|npipe):\/\/(.+)$/;
/** Of the engine itself, without and with TLS. */
const DEFAULT_PORTS = { plain: '2375', tls: '2376' };

/**
 * Reads `DOCKER_HOST`. For https the library takes its certificates from the folder that `DOCKER_CERT_PATH` names, as
 * the docker command does.
 *
 * @throws SandboxBackendError for other kinds of addresses
 */
export function engineEndpoint(dockerHost: string): EngineEndpoint {
  const [, , socketPath] = SOCKET.exec(dockerHost) ?? [];
  if (socketPath !== undefined) {
    return { socketPath, host: undefined, port: undefined };
  }
  const url = URL.canParse(dockerHost) ? new URL(dockerHost) : null;
  if (url === null || !['tcp:', 'http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new SandboxBackendError('DOCKER_HOST must be unix:///path/to/socket or tcp://host:port');
  }
  return {
    socketPath: undefined,
    host: url.hostname,
    port: Number(url.port || (url.protocol === 'https:' ? DEFAULT_PORTS.tls : DEFAULT_PORTS.plain)),
    ...(url.protocol === 'https:' && { protocol: 'https' as const }),
  };
}

/** Whether the engine is reached by a socket of this machine, so that its folders may be ours to see. */
export function isSocketEngine(dockerHost: string | null): boolean {
  return dockerHost === null || engineEndpoint(dockerHost).socketPath !== undefined;
}

/** Whether ports that the engine publishes on loopback are on *our* loopback. */
export function isLocalEngine(dockerHost: string | null): boolean {
  const host = dockerHost === null ? undefined : engineEndpoint(dockerHost).host;
  return host === undefined || host === 'localhost' || host === '[::1]' || host.startsWith('127.');
}

/** A client of the engine; connects when it is used. */
export function connectEngine(dockerHost: string | null): Docker {
  // Members that are undefined keep the library from taking its own from the environment.
  return new Docker(dockerHost === null ? {} : engineEndpoint(dockerHost));
}

/** A stop takes its grace time, and nothing else that is asked of an engine nearly as long. Pulls have their own limits. */
const DEADLINE_MS = 60_000;

/**
 * What the engine answers, if it does in time: the client library waits for ever for an engine that hangs, or that dies
 * in the middle of an answer, and with it would whoever works on the sandbox.
 *
 * @throws Error in words for people when the time is over
 */
export async function withDeadline<T>(answer: Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`the Docker engine did not answer within ${deadlineMs / 1000} s`));
  }, deadlineMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** What an engine can do. */
export interface EngineFacts {
  version: string;
  processors: number;
  /** Whether `host-gateway` may stand for the host's address: Docker 20.10, API 1.41. */
  knowsHostGateway: boolean;
  /** Where it keeps images and volumes, as its own machine calls that folder; null when it does not say. */
  rootDir: string | null;
}

const HOST_GATEWAY_API = 41;

/** Asks the engine about itself. */
export async function readEngineFacts(docker: Docker): Promise<EngineFacts> {
  const info: unknown = await docker.info();
  const version = await docker.version();
  const [major = 0, minor = 0] = version.ApiVersion.split('.').map(Number);
  return {
    version: version.Version,
    processors: jsonNumber(info, 'NCPU') ?? 1,
    knowsHostGateway: major > 1 || minor >= HOST_GATEWAY_API,
    rootDir: jsonText(info, 'DockerRootDir'),
  };
}

const NOBODY = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT']);
/** What the client library puts before the engine's words. */
const PREFIX = /^\(HTTP code \d+\) .*? - /;
/** The kernel's words, in whatever the engine says around them. */
const DISK_FULL = /no space left on device/i;

/** The HTTP status that the engine refused something with; null for any other failure. */
export function engineStatus(error: unknown): number | null {
  return jsonNumber(error, 'statusCode');
}

/** The engine's own words. */
function engineMessage(error: unknown): string {
  return (jsonText(error, 'json', 'message') ?? jsonText(error, 'message') ?? String(error))
    .replace(PREFIX, '')
    .trim();
}

/**
 * A failure of the engine as an error for people.
 *
 * @param what what could not be done, as the beginning of a sentence
 */
export function engineFailure(what: string, cause: unknown): SandboxBackendError {
  return cause instanceof SandboxBackendError
    ? cause
    : new SandboxBackendError(`${what}: ${reasonOf(cause)}`, { cause });
}

function reasonOf(cause: unknown): string {
  const code = jsonText(cause, 'code');
  if (code !== null && NOBODY.has(code)) {
    return `no Docker engine answers (${code}); is it running, and is DOCKER_HOST right?`;
  }
  if (code === 'EACCES') {
    return "this user may not use the Docker engine's socket";
  }
  const message = engineMessage(cause);
  return DISK_FULL.test(message)
    ? `${message} (the disk of the Docker engine is full: remove sandboxes, or images and volumes that nobody needs; "docker system df" shows what takes the space)`
    : message;
}

/** What the engine answers, or null when it answers with one of the statuses. */
export async function nullOnStatus<T>(statuses: number[], answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    const status = engineStatus(error);
    if (status !== null && statuses.includes(status)) {
      return null;
    }
    throw error;
  }
}

/** Removes a container that does not run, without force: what still runs is somebody's. */
export async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  try {
    // `v`: volumes that the image itself asked for.
    await nullOnStatus([404], container.remove({ v: true }));
  } catch (error) {
    if (engineStatus(error) !== 409 || (await nullOnStatus([404], container.inspect()))?.State.Running) {
      throw error;
    }
    // Somebody else is at it already.
    await nullOnStatus([404], container.wait({ condition: 'removed' }));
  }
}
