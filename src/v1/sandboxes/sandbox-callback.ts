import { hostname, networkInterfaces } from 'node:os';
import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import type { SandboxBackendKind } from './backends/sandbox-backend.js';

const WEBHOOKS_PATH = '/api/v1/webhooks';

/** How agent servers reach the service. */
@Injectable()
export class SandboxCallback {
  constructor(
    private readonly config: AppConfig,
    private readonly address: ServiceAddress,
  ) {}

  /** Base address of our webhooks as sandboxes reach it. Known once the service listens. */
  get webhooksUrl(): string {
    return `${callbackUrl(this.facts)}${WEBHOOKS_PATH}`;
  }

  /** Why sandboxes cannot reach the service, in one line for the operator; null when they probably can. */
  get problem(): string | null {
    return callbackProblem(this.facts);
  }

  private get facts(): CallbackFacts {
    const { http, sandboxes } = this.config;
    return {
      backend: sandboxes.backend,
      configured: sandboxes.callbackUrl,
      host: http.host,
      port: this.address.port,
      dockerNetwork: sandboxes.dockerNetwork,
      ownHostname: hostname(),
      ownAddress: sandboxes.address ?? ownAddress(),
    };
  }
}

/** What the address of our webhooks is derived from. */
export interface CallbackFacts {
  backend: SandboxBackendKind;
  /** `SANDBOX_CALLBACK_URL`. */
  configured: string | null;
  /** Where the service listens. */
  host: string;
  port: number;
  dockerNetwork: string | null;
  /** Host name of the machine, or of the container that the service runs in. */
  ownHostname: string;
  /** `SANDBOX_ADDRESS`, else an address of the machine or of the service's own pod; null: it has none but loopback. */
  ownAddress: string | null;
}

const ANY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** Base address of the service as the agent servers of a backend reach it, without a trailing slash. */
export function callbackUrl(facts: CallbackFacts): string {
  if (facts.configured !== null) {
    return facts.configured;
  }
  return `http://${callbackHost(facts)}:${facts.port}`;
}

/** Why agent servers cannot reach the service, in one line for the operator; null when they probably can. */
export function callbackProblem({ backend, configured, dockerNetwork, host }: CallbackFacts): string | null {
  const loopback = host === 'localhost' || host === '::1' || host.startsWith('127.');
  if (backend === 'process' || configured !== null || dockerNetwork !== null || !loopback) {
    return null;
  }
  return `${backend === 'docker' ? 'containers' : 'pods'} cannot reach a service that listens on ${host}: agents cannot open pull requests; set HOST=0.0.0.0 or SANDBOX_CALLBACK_URL`;
}

function callbackHost({ backend, host, dockerNetwork, ownHostname, ownAddress: own }: CallbackFacts): string {
  if (backend === 'docker') {
    return dockerNetwork === null ? 'host.docker.internal' : ownHostname;
  }
  if (ANY_ADDRESS.has(host)) {
    return backend === 'kubernetes' ? bracketed(own ?? ownHostname) : '127.0.0.1';
  }
  return bracketed(host);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** The first one that others may reach, IPv4 if there is one. */
function ownAddress(): string | null {
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'));
  return (addresses.find(({ family }) => family === 'IPv4') ?? addresses[0])?.address ?? null;
}
