import Docker from 'dockerode';
import { SandboxBackendError } from '../sandbox-backend.error.js';

/** Where an engine is, as the client library wants it. */
export interface EngineEndpoint {
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
