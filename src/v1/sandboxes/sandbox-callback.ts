import { isIPv4 } from 'node:net';
import { hostname } from 'node:os';
import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { ownAddresses } from '@slipway/sandboxes/launch-variables.js';
import type { ServicePlace } from './backends/sandbox-backend.descriptor.js';
import { SANDBOX_BACKENDS } from './backends/sandbox-backends.js';
import type { SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';

const WEBHOOKS_PATH = '/api/v1/webhooks';

@Injectable()
export class SandboxCallback {
  constructor(
    private readonly config: AppConfig,
    private readonly address: ServiceAddress,
  ) {}

  /** Base address of our webhooks for sandboxes, known once the service listens. */
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

export interface CallbackFacts extends ServicePlace {
  backend: SandboxBackendKind;
  configured: string | null;
  host: string;
  port: number;
}

const ANY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** Base address of the service for a backend's agent servers, without a trailing slash. */
export function callbackUrl(facts: CallbackFacts): string {
  if (facts.configured !== null) {
    return facts.configured;
  }
  const { backend, port } = facts;
  const host = SANDBOX_BACKENDS[backend].serviceHost(servicePlace(facts));
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Why agent servers cannot reach the service, in one line for the operator; null when they probably can. */
export function callbackProblem(facts: CallbackFacts): string | null {
  const { backend, configured, host } = facts;
  const loopback = host === 'localhost' || host === '::1' || host.startsWith('127.');
  const cutOff = SANDBOX_BACKENDS[backend].cutOffFromLoopback(servicePlace(facts));
  return loopback && configured === null && cutOff !== null
    ? `${cutOff} cannot reach a service that listens on ${host}: agents cannot open pull requests; set HOST=0.0.0.0 or SANDBOX_CALLBACK_URL`
    : null;
}

function servicePlace(facts: CallbackFacts): ServicePlace {
  return { ...facts, host: ANY_ADDRESS.has(facts.host) ? null : facts.host };
}

function ownAddress(): string | null {
  const addresses = ownAddresses();
  return addresses.find(isIPv4) ?? addresses[0] ?? null;
}
