import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { parseHostLabel, type SandboxPort, toHostLabel } from './port-host.js';
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
    const { expose } = this.config.sandboxes;
    const base = this.portsUrl();
    // The database keeps no order.
    return Object.keys(ports)
      .toSorted()
      .flatMap((name) => {
        if (expose === 'direct') {
          return [{ name, url: ports[name] ?? '' }];
        }
        return base === null ? [] : [{ name, url: `${originOf(base, { sandboxId, name })}/` }];
      });
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
    return base === null ? null : originOf(base, port);
  }

  /** The port that a request is for, by its `Host`; null when it is for the service itself. */
  portOf(host: string | undefined): SandboxPort | null {
    const base = this.portsUrl();
    const wanted = host?.toLowerCase() ?? '';
    if (base === null || !wanted.endsWith(`.${base.host}`)) {
      return null;
    }
    return parseHostLabel(wanted.slice(0, -base.host.length - 1));
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

function originOf({ protocol, host }: URL, port: SandboxPort): string {
  return `${protocol}//${toHostLabel(port)}.${host}`;
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
