import { Injectable } from '@nestjs/common';
import { BASE62 } from '../../common/identifiers.js';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { portToken, TOKEN_PARAMETER } from './session-key.js';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** What clients reach something in a sandbox at. */
export interface PortAddress {
  name: string;
  url: string;
}

/** Where clients find the agent servers of sandboxes, and the ports of what agents start. */
@Injectable()
export class SandboxUrls {
  private portsBase: { of: string; url: URL | null } | null = null;

  constructor(
    private readonly config: AppConfig,
    private readonly service: ServiceAddress,
  ) {}

  /**
   * Base address of a sandbox's agent server for clients, without a trailing slash.
   *
   * @param address where the service itself reaches it
   */
  agentServer(sandboxId: string, address: string): string {
    return this.config.sandboxes.expose === 'direct'
      ? address
      : `${this.service.publicUrl}/api/v1/sandboxes/${sandboxId}/agent-server`;
  }

  /** Whether ports have addresses for clients. */
  get exposesPorts(): boolean {
    return this.config.sandboxes.expose === 'direct' || this.portsUrl() !== null;
  }

  /**
   * Addresses of a sandbox's ports for clients, for texts that others may read: through the service these open nothing
   * by themselves.
   *
   * @param ports where the service itself reaches them, by name
   */
  ports(sandboxId: string, ports: Readonly<Record<string, string>>): PortAddress[] {
    // The database keeps no order.
    const names = Object.keys(ports).toSorted();
    if (this.config.sandboxes.expose === 'direct') {
      return names.map((name) => ({ name, url: ports[name] ?? '' }));
    }
    const base = this.portsUrl();
    if (base === null || names.length === 0) {
      return [];
    }
    return toHostLabels(sandboxId, names).map((label, index) => ({
      name: names[index] ?? '',
      url: `${originOf(base, label)}/`,
    }));
  }

  /** Likewise, for the sandbox's owner: with what opens them in a browser. */
  openPorts(sandboxId: string, sessionKey: string, ports: Readonly<Record<string, string>>): PortAddress[] {
    const addresses = this.ports(sandboxId, ports);
    if (addresses.length === 0 || this.config.sandboxes.expose === 'direct') {
      return addresses;
    }
    const token = portToken(sessionKey);
    return addresses.map(({ name, url }) => ({ name, url: `${url}?${TOKEN_PARAMETER}=${token}` }));
  }

  /** Where clients reach a port through the service, without a trailing slash; by itself it opens nothing. Null: they do not. */
  portOrigin(port: SandboxPort): string | null {
    const base = this.portsUrl();
    const [label = ''] = toHostLabels(port.sandboxId, [port.name]);
    return base === null ? null : originOf(base, label);
  }

  /** Whether a `Host` is one for ports of sandboxes, whether or not there is such a port. */
  isPortHost(host: string | undefined): boolean {
    return this.labelOf(host) !== null;
  }

  /** The port that a `Host` names; null when it names none. */
  portOf(host: string | undefined): SandboxPort | null {
    return parseHostLabel(this.labelOf(host) ?? '');
  }

  /** What stands before the name that all ports are below. Which port of the listener it names makes no difference. */
  private labelOf(host: string | undefined): string | null {
    const base = this.portsUrl();
    if (base === null || host === undefined) {
      return null;
    }
    const name = host.toLowerCase().replace(/\.?(?::\d*)?$/, '');
    const isBelow = name.endsWith(`.${base.hostname}`) && name !== new URL(this.service.publicUrl).hostname;
    return isBelow ? name.slice(0, -base.hostname.length - 1) : null;
  }

  /** `SANDBOX_PORTS_URL`; on a machine of one's own below `localhost`, whose subdomains are that machine too (RFC 6761). */
  private portsUrl(): URL | null {
    const of = this.service.publicUrl;
    if (this.portsBase?.of !== of) {
      this.portsBase = { of, url: portsUrl(this.config.sandboxes.portsUrl, of) };
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

/** A port of a sandbox. */
interface SandboxPort {
  sandboxId: string;
  /** As the specification names it: `WORKER_1`. */
  name: string;
}

const HOST_LABEL = /^([a-z]+(?:-[a-z]+)?-[1-9]\d?)-([0-9a-z]{1,60})$/;
/** In front of the first digit, so that leading zeros of an id count. */
const START = 1n;

/** As many digits as a number holds exactly; with big integers for each digit a page of sandboxes would take long. */
const AT_ONCE = 8;

/**
 * Labels of host names for the ports of a sandbox. Host names have no upper case and ids do, so the id is written with
 * 36 digits instead of 62: 26 of them for the 22 of an id.
 */
export function toHostLabels(sandboxId: string, names: readonly string[]): string[] {
  let code = START;
  for (let begin = 0; begin < sandboxId.length; begin += AT_ONCE) {
    const digits = Array.from(sandboxId.slice(begin, begin + AT_ONCE), (digit) => BASE62.indexOf(digit));
    const value = digits.reduce((sum, digit) => sum * 62 + digit, 0);
    code = code * 62n ** BigInt(digits.length) + BigInt(value);
  }
  const text = code.toString(36);
  return names.map((name) => `${name.toLowerCase().replaceAll('_', '-')}-${text}`);
}

/** The port that a label stands for; null when it stands for none. */
export function parseHostLabel(label: string): SandboxPort | null {
  const [, name, code] = HOST_LABEL.exec(label) ?? [];
  if (name === undefined || code === undefined) {
    return null;
  }
  let rest = Array.from(code).reduce((sum, digit) => sum * 36n + BigInt(parseInt(digit, 36)), 0n);
  let sandboxId = '';
  while (rest > START) {
    sandboxId = BASE62.charAt(Number(rest % 62n)) + sandboxId;
    rest /= 62n;
  }
  return rest === START && sandboxId !== ''
    ? { sandboxId, name: name.toUpperCase().replaceAll('-', '_') }
    : null;
}
