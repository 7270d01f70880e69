import path from 'node:path';
import type { PodPort } from './sandbox-backend.js';

const UNIX_PREFIX = 'unix:';
const POD_FORM = /^kube:([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253}):([1-9]\d{0,4})$/;
const MAX_PORT = 65_535;
const TCP_FORM = /^http:\/\/(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}$/;

/** Address of a program in a sandbox: its agent server, or a program that an agent started on a port. */
export type SandboxAddress =
  | {
      kind: 'tcp';
      /** `http://host:port`. */
      origin: string;
    }
  | {
      kind: 'unix';
      socketPath: string;
    }
  | ({ kind: 'pod' } & PodPort);

/** A backend reported an address in none of the accepted forms. */
export class SandboxAddressError extends Error {
  constructor() {
    super(
      'the address of the sandbox is invalid: expected http://host:port, unix:/absolute/path or kube:namespace/pod:port',
    );
    this.name = 'SandboxAddressError';
  }
}

/** Returns null when the text has none of the three forms. */
export function parseSandboxAddress(text: string): SandboxAddress | null {
  if (text.startsWith(UNIX_PREFIX)) {
    const socketPath = text.slice(UNIX_PREFIX.length);
    return isPlainPath(socketPath) ? { kind: 'unix', socketPath } : null;
  }
  const [, namespace, pod, digits] = POD_FORM.exec(text) ?? [];
  if (namespace !== undefined && pod !== undefined) {
    const port = Number(digits);
    return port > MAX_PORT ? null : { kind: 'pod', namespace, pod, port };
  }
  if (!TCP_FORM.test(text) || !URL.canParse(text)) {
    return null;
  }
  // Port 80 is the only one that an origin leaves out.
  const { origin, port } = new URL(text);
  return port === '0' ? null : { kind: 'tcp', origin };
}

export function requireSandboxAddress(text: string): SandboxAddress {
  const address = parseSandboxAddress(text);
  if (address === null) {
    throw new SandboxAddressError();
  }
  return address;
}

/** The origin for the `Host` header, which programs in a sandbox take for their own address. */
export function requestOrigin(address: SandboxAddress): string {
  switch (address.kind) {
    case 'tcp':
      return address.origin;
    case 'unix':
      return 'http://localhost';
    case 'pod':
      return `http://localhost:${address.port}`;
  }
}

function isPlainPath(text: string): boolean {
  return (
    path.isAbsolute(text) && path.normalize(text) === text && !text.endsWith('/') && !text.includes('\0')
  );
}
