import { jsonNumber, jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.error.js';

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
export function engineMessage(error: unknown): string {
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
