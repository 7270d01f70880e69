import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';

/** Where clients find the agent servers of sandboxes. */
@Injectable()
export class SandboxAddresses {
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
}
