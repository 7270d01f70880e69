import { Duplex } from 'node:stream';
import { inTime } from '@slipway/common/async.js';
import Docker from 'dockerode';
import { jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { SandboxBackendError, SandboxBackendUnavailableError, sessionKeyLine } from '../sandbox-backend.js';

const SOCKET_ADDRESS = /^(unix|npipe):\/\/(.+)$/;
const DEFAULT_PORTS = { plain: '2375', tls: '2376' };
/** Longer than the grace time of a stop, the slowest call. It does not bound pulls. */
const DEADLINE_MS = 60_000;
/** `host-gateway` came with Docker 20.10, API 1.41. */
const HOST_GATEWAY_API = 41;
const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'EAI_AGAIN',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ETIMEDOUT',
]);
const STATUS_PREFIX = /^\(HTTP code \d+\) .*? - /;
/** The kernel's message, which the engine wraps in various ways. */
const DISK_FULL = /no space left on device/i;

interface EngineEndpoint {
  socketPath: string | undefined;
  host: string | undefined;
  port: number | undefined;
  protocol?: 'https';
}

export interface EngineFacts {
  version: string;
  processors: number;
  knowsHostGateway: boolean;
  /** Whether its root is the user that it runs as. */
  isRootless: boolean;
  /** Whether users in containers are others on its machine. */
  isRemapped: boolean;
  /** As its machine calls itself. */
  machine: { hostname: string | null; kernel: string | null };
  defaultRuntime: string | null;
  /** The folder of its images and volumes on its own machine; null when it does not say. */
  rootDir: string | null;
}

export function connectEngine(dockerHost: string | null): Docker {
  // Undefined members keep the library from reading its own environment variables.
  return new Docker(dockerHost === null ? {} : engineEndpoint(dockerHost));
}

/**
 * Parses `DOCKER_HOST`. The library reads `DOCKER_CERT_PATH` for https, as the docker command does.
 * @throws SandboxBackendError
 */
export function engineEndpoint(dockerHost: string): EngineEndpoint {
  const [, , socketPath] = SOCKET_ADDRESS.exec(dockerHost) ?? [];
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

/** Whether the engine listens on a socket of this machine, so that its folders may be visible to us. */
export function isSocketEngine(dockerHost: string | null): boolean {
  return dockerHost === null || engineEndpoint(dockerHost).socketPath !== undefined;
}

/** Whether ports that the engine publishes on loopback are on *our* loopback. */
export function isLocalEngine(dockerHost: string | null): boolean {
  const host = dockerHost === null ? undefined : engineEndpoint(dockerHost).host;
  return host === undefined || host === 'localhost' || host === '[::1]' || host.startsWith('127.');
}

export async function readEngineFacts(docker: Docker): Promise<EngineFacts> {
  const info: unknown = await docker.info();
  const version = await docker.version();
  const [major = 0, minor = 0] = version.ApiVersion.split('.').map(Number);
  return {
    version: version.Version,
    processors: jsonNumber(info, 'NCPU') ?? 1,
    knowsHostGateway: major > 1 || minor >= HOST_GATEWAY_API,
    isRootless: hasOption(info, 'rootless'),
    isRemapped: hasOption(info, 'userns'),
    machine: { hostname: jsonText(info, 'Name'), kernel: jsonText(info, 'KernelVersion') },
    defaultRuntime: jsonText(info, 'DefaultRuntime'),
    rootDir: jsonText(info, 'DockerRootDir'),
  };
}

function hasOption(info: unknown, name: string): boolean {
  return jsonList(info, 'SecurityOptions').some((option) => /^name=(\w+)/.exec(String(option))?.[1] === name);
}

/** @throws SandboxBackendError with `failure` and the reason; SandboxBackendUnavailableError without an answer */
export async function callEngine<T>(
  failure: string,
  call: () => Promise<T>,
  deadlineMs?: number,
): Promise<T> {
  try {
    return await withDeadline(call(), deadlineMs);
  } catch (error) {
    throw engineFailure(failure, error);
  }
}

/** Rejects after `deadlineMs`: the client library waits forever for an engine that hangs or dies in mid-response. */
export async function withDeadline<T>(response: Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  const problem = `the Docker engine did not answer within ${deadlineMs / 1000} s`;
  return await inTime(deadlineMs, response, () => new Error(problem));
}

/** Sends what the client library has no method for. */
export async function dialEngine(
  docker: Docker,
  request: Parameters<Docker['modem']['dial']>[0],
): Promise<unknown> {
  const statusCodes = { 200: true, 404: 'no such container', 500: 'server error' };
  return await new Promise((resolve, reject) => {
    docker.modem.dial({ statusCodes, ...request }, (error, result) =>
      error ? reject(error) : resolve(result),
    );
  });
}

/** Attaches without a body: that of the library's own method arrives as input (dockerode 742), always on Podman. */
export async function openStandardInput(docker: Docker, containerId: string): Promise<unknown> {
  return await dialEngine(docker, {
    method: 'POST',
    path: `/containers/${containerId}/attach?`,
    options: { stream: true, stdin: true },
    file: Buffer.alloc(0),
    isStream: true,
    hijack: true,
    openStdin: true,
  });
}

export async function nullOnStatus<T>(statuses: number[], response: Promise<T>): Promise<T | null> {
  try {
    return await response;
  } catch (error) {
    const status = engineStatus(error);
    if (status !== null && statuses.includes(status)) {
      return null;
    }
    throw error;
  }
}

/** The HTTP status that the engine refused a request with; null for any other failure. */
export function engineStatus(error: unknown): number | null {
  return jsonNumber(error, 'statusCode');
}

/** Whether a retry may work: Docker 20.10 can fail to run its own init process while other containers start. */
export function isTemporaryStartFailure(error: unknown): boolean {
  return /docker-init.*permission denied/s.test(errorMessage(error));
}

/** Turns an engine failure into an error for users, which `failure` begins. Other errors are returned unchanged. */
export function engineFailure(
  failure: string,
  cause: unknown,
): SandboxBackendError | SandboxBackendUnavailableError {
  if (cause instanceof SandboxBackendError || cause instanceof SandboxBackendUnavailableError) {
    return cause;
  }
  const Failure = isUnreachable(cause) ? SandboxBackendUnavailableError : SandboxBackendError;
  return new Failure(`${failure}: ${reasonOf(cause)}`, { cause });
}

function isUnreachable(cause: unknown): boolean {
  return UNREACHABLE_CODES.has(jsonText(cause, 'code') ?? '');
}

function reasonOf(cause: unknown): string {
  const code = jsonText(cause, 'code');
  if (isUnreachable(cause)) {
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

function engineMessage(error: unknown): string {
  return (jsonText(error, 'json', 'message') ?? jsonText(error, 'message') ?? String(error))
    .replace(STATUS_PREFIX, '')
    .trim();
}

/** Removes a container without force, so that a running one stays. */
export async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  try {
    // `v` also removes the volumes that the image itself declares.
    await nullOnStatus([404], container.remove({ v: true }));
  } catch (error) {
    if (engineStatus(error) !== 409 || (await nullOnStatus([404], container.inspect()))?.State.Running) {
      throw error;
    }
    await nullOnStatus([404], container.wait({ condition: 'removed' }));
  }
}

/** The engine keeps the line until it is read, so that the program gets its key even if this process dies. */
export async function sendSessionKey(docker: Docker, containerId: string, sessionKey: string): Promise<void> {
  const input = await openStandardInput(docker, containerId);
  if (!(input instanceof Duplex)) {
    throw new SandboxBackendError('the engine does not hand over the standard input of the sandbox');
  }
  await new Promise<void>((resolve, reject) => {
    // Also catches later errors: the engine ends the connection when the program has read its input.
    input.on('error', reject);
    input.end(sessionKeyLine(sessionKey), () => resolve());
  });
}
