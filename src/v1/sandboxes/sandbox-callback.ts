import { hostname } from 'node:os';
import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { type CallbackFacts, callbackProblem, callbackUrl } from './callback-url.js';

const WEBHOOKS_PATH = '/api/v1/webhooks';

/** How agent servers reach us. */
@Injectable()
export class SandboxCallback {
  constructor(
    private readonly config: AppConfig,
    private readonly address: ServiceAddress,
  ) {}

  /** Base address of our webhooks as sandboxes reach it. Known once we listen. */
  get webhooksUrl(): string {
    return `${callbackUrl(this.facts)}${WEBHOOKS_PATH}`;
  }

  /** Why sandboxes will not reach us, in one line for the operator; null when nothing speaks against it. */
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
      hostname: hostname(),
    };
  }
}
