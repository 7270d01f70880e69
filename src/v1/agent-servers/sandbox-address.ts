import path from 'node:path';

const UNIX_PREFIX = 'unix:';
const TCP_FORM = /^http:\/\/(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}$/;

/** Where a program in a sandbox is reached: its agent server, or what an agent started at a port. */
export type SandboxAddress =
  | {
      kind: 'tcp';
      /** `http://host:port`. */
      origin: string;
    }
  | {
      kind: 'unix';
      /** Absolute and without symbolic links: it names the socket itself. */
      socketPath: string;
    };

/** A running agent server, and the key that it asks for. It belongs to one start of its sandbox. */
export interface AgentServerTarget {
  /** `http://host:port` or `unix:/absolute/path`, without a trailing slash. */
  address: string;
  sessionKey: string;
  /**
   * Whether the sandbox still is in that start. Asked before each new connection: where the sandbox was, anybody may
   * listen now.
   */
  isCurrent?: () => Promise<boolean>;
}

/** An address that a backend reported, and that is none. */
export class SandboxAddressError extends Error {
  constructor() {
    super('the address of the sandbox is invalid: expected http://host:port or unix:/absolute/path');
    this.name = 'SandboxAddressError';
  }
}

/** Parses the text that a backend reports and that rows keep; null when it has neither of the two forms. */
export function parseSandboxAddress(text: string): SandboxAddress | null {
  if (text.startsWith(UNIX_PREFIX)) {
    const socketPath = text.slice(UNIX_PREFIX.length);
    return isPlainPath(socketPath) ? { kind: 'unix', socketPath } : null;
  }
  if (!TCP_FORM.test(text) || !URL.canParse(text)) {
    return null;
  }
  // Port 80 is the only one that an origin leaves out.
  const { origin, port } = new URL(text);
  return port === '0' ? null : { kind: 'tcp', origin };
}

/** @throws SandboxAddressError */
export function requireSandboxAddress(text: string): SandboxAddress {
  const address = parseSandboxAddress(text);
  if (address === null) {
    throw new SandboxAddressError();
  }
  return address;
}

/** Whether only this machine can reach it, so that it is no address for clients. */
export function isUnixAddress(text: string): boolean {
  return text.startsWith(UNIX_PREFIX);
}

/** The origin that requests name: `Host`, and what programs in a sandbox believe to be their own address. */
export function requestOrigin(address: SandboxAddress): string {
  return address.kind === 'tcp' ? address.origin : 'http://localhost';
}

function isPlainPath(text: string): boolean {
  return (
    path.isAbsolute(text) && path.normalize(text) === text && !text.endsWith('/') && !text.includes('\0')
  );
}
