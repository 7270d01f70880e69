import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { parseHostLabel, type SandboxPort, toHostLabels } from './port-host.js';
import { portToken, TOKEN_PARAMETER } from './port-token.js';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** What clients reach something in a sandbox at. */
export interface PortAddress {
  name: string;
  url: string;
}

/** Where clients find the agent servers of sandboxes, and the ports of what agents start. */
@Injectable()
export class SandboxAddresses {
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
