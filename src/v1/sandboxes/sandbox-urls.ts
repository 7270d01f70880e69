import { Injectable } from '@nestjs/common';
import { BASE62 } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { portToken, TOKEN_PARAMETER } from './session-key.js';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
/** Any port of this machine; such a source cannot name an IPv6 address. */
const LOCAL_SOURCES = ['http://localhost:*', 'http://127.0.0.1:*', 'http://*.localhost:*'];

export interface PortAddress {
  name: string;
  url: string;
}

/** Addresses by which clients reach the agent servers of sandboxes, and the ports of what agents start. */
@Injectable()
export class SandboxUrls {
  private portsBase: { publicUrl: string; url: URL | null } | null = null;

  constructor(
    private readonly config: AppConfig,
    private readonly service: ServiceAddress,
  ) {}

  /**
   * Returns an address without a trailing slash. Without an `exposePort` it may be the path below the service, which always
   * works.
   */
  agentServer(sandboxId: string, exposePort: number | null): string {
    const { expose } = this.config.sandboxes;
    if (expose === 'ports' && exposePort !== null) {
      return `http://127.0.0.1:${exposePort}`;
    }
    const base = expose === 'hosts' ? this.portsUrl() : null;
    return base === null
      ? `${this.service.publicUrl}/api/v1/sandboxes/${sandboxId}/agent-server`
      : originOf(base, toAgentServerLabel(sandboxId));
  }

  /** The sandbox whose agent server a `Host` header names; null when it names none. */
  agentServerAt(host: string | undefined): string | null {
    return this.config.sandboxes.expose === 'hosts' ? parseAgentServerLabel(this.labelOf(host) ?? '') : null;
  }

  /** Whether ports have addresses for clients. */
  get exposesPorts(): boolean {
    return this.portsUrl() !== null;
  }

  /** Addresses for clients. They open nothing without a token or key, so texts may show them. */
  ports(sandboxId: string, ports: Readonly<Record<string, string>>): PortAddress[] {
    const base = this.portsUrl();
    if (base === null) {
      return [];
    }
    // The database does not keep their order.
    const names = Object.keys(ports).toSorted();
    return toHostLabels(sandboxId, names).map((label, index) => ({
      name: names[index] ?? '',
      url: `${originOf(base, label)}/`,
    }));
  }

  /** Like `ports`, for the owner of the sandbox: with the token that opens them in a browser. */
  openPorts(sandboxId: string, sessionKey: string, ports: Readonly<Record<string, string>>): PortAddress[] {
    const addresses = this.ports(sandboxId, ports);
    const token = addresses.length === 0 ? '' : portToken(sessionKey);
    return addresses.map(({ name, url }) => ({ name, url: `${url}?${TOKEN_PARAMETER}=${token}` }));
  }

  /** The origins at which browsers reach sandboxes, as sources of a Content-Security-Policy. */
  browserSources(): string[] {
    const { portsUrl: configured } = this.config.sandboxes;
    const { publicUrl } = this.config.http;
    const isLocal = publicUrl === null || LOOPBACK.has(new URL(publicUrl).hostname);
    return [
      ...(isLocal ? LOCAL_SOURCES : []),
      ...(configured === null ? [] : [originOf(new URL(configured), '*')]),
    ];
  }

  /** Returns where clients reach a port, without a trailing slash and token; null if they do not. */
  portOrigin(port: SandboxPort): string | null {
    const base = this.portsUrl();
    const [label = ''] = toHostLabels(port.sandboxId, [port.name]);
    return base === null ? null : originOf(base, label);
  }

  /** Whether a `Host` header is for sandboxes, existing or not. */
  isPortHost(host: string | undefined): boolean {
    return this.labelOf(host) !== null;
  }

  /** The port that a `Host` header names; null when it names none. */
  portOf(host: string | undefined): SandboxPort | null {
    return parseHostLabel(this.labelOf(host) ?? '');
  }

  /** The first part of a `Host` header for sandboxes. Its port number is ignored. */
  private labelOf(host: string | undefined): string | null {
    const base = this.portsUrl();
    if (base === null || host === undefined) {
      return null;
    }
    const name = host.toLowerCase().replace(/\.?(?::\d*)?$/, '');
    const isBelow = name.endsWith(`.${base.hostname}`) && name !== new URL(this.service.publicUrl).hostname;
    return isBelow ? name.slice(0, -base.hostname.length - 1) : null;
  }

  /** `SANDBOX_PORTS_URL`, or locally `localhost`, whose subdomains are local too (RFC 6761). */
  private portsUrl(): URL | null {
    const { publicUrl } = this.service;
    if (this.portsBase?.publicUrl !== publicUrl) {
      this.portsBase = { publicUrl, url: portsUrl(this.config.sandboxes.portsUrl, publicUrl) };
    }
    return this.portsBase.url;
  }
}

function originOf({ protocol, host }: URL, label: string): string {
  return `${protocol}//${label}.${host}`;
}

function portsUrl(configured: string | null, publicUrl: string): URL | null {
  if (configured !== null) {
    return new URL(configured);
  }
  const url = new URL(publicUrl);
  if (!LOOPBACK.has(url.hostname)) {
    return null;
  }
  url.hostname = 'localhost';
  return url;
}

interface SandboxPort {
  sandboxId: string;
  name: string;
}

const HOST_LABEL = /^([a-z]+(?:-[a-z]+)?-[1-9]\d?)-([0-9a-z]{1,60})$/;
/** No label of a port: those have a number before the id. */
const AGENT_SERVER_LABEL = /^agent-server-([0-9a-z]{1,49})$/;
/** Stands before the first digit, so that leading zeros of an id count. */
const START = 1n;

export function toHostLabels(sandboxId: string, names: readonly string[]): string[] {
  const code = encodeId(sandboxId);
  return names.map((name) => `${name.toLowerCase().replaceAll('_', '-')}-${code}`);
}

export function parseHostLabel(label: string): SandboxPort | null {
  const [, name, code] = HOST_LABEL.exec(label) ?? [];
  const sandboxId = decodeId(code ?? '');
  return name === undefined || sandboxId === null
    ? null
    : { sandboxId, name: name.toUpperCase().replaceAll('-', '_') };
}

export function toAgentServerLabel(sandboxId: string): string {
  return `agent-server-${encodeId(sandboxId)}`;
}

/** The sandbox that a label of an agent server was made for; null for any other label. */
export function parseAgentServerLabel(label: string): string | null {
  return decodeId(AGENT_SERVER_LABEL.exec(label)?.[1] ?? '');
}

/** Host names ignore case and ids do not, so the id is written in base 36 instead of 62: 22 digits become 26. */
function encodeId(sandboxId: string): string {
  const code = Array.from(sandboxId).reduce((sum, digit) => sum * 62n + BigInt(BASE62.indexOf(digit)), START);
  return code.toString(36);
}

function decodeId(code: string): string | null {
  let rest = Array.from(code).reduce((sum, digit) => sum * 36n + BigInt(parseInt(digit, 36)), 0n);
  let sandboxId = '';
  while (rest > START) {
    sandboxId = BASE62.charAt(Number(rest % 62n)) + sandboxId;
    rest /= 62n;
  }
  return rest === START && sandboxId !== '' ? sandboxId : null;
}
