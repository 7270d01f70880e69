import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { AppConfig } from '../../../config/app-config.js';
import { ConfigError } from '../../../config/config.error.js';
import { HostIdentity } from '../host-identity.js';
import { type OtherHost, SandboxHostRepository } from '../sandbox-host.repository.js';

const HEARTBEAT_MS = 5_000;

/** Registers this host, so that replicas on two machines notice when they cannot reach each other's sandboxes. */
@Injectable()
export class HostRegistry extends BackgroundLoop implements OnModuleInit {
  constructor(
    private readonly hosts: SandboxHostRepository,
    private readonly host: HostIdentity,
    private readonly config: AppConfig,
  ) {
    super(HEARTBEAT_MS, new Logger('Sandboxes'), 'failed to write the host heartbeat', 'warn');
  }

  /** @throws ConfigError when another host serves this database and this one gives no address to reach it at */
  async onModuleInit(): Promise<void> {
    await this.hosts.register(this.host.id, this.config.sandboxes.address, (other) => this.check(other));
  }

  /** Another replica of this host registers it again within seconds. */
  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    try {
      await this.hosts.remove(this.host.id);
    } catch (error) {
      // The other hosts notice within seconds anyway, and a stop must not fail because the database is down.
      this.logger.warn('failed to unregister the host', { error: errorMessage(error) });
    }
  }

  protected async work(): Promise<void> {
    await this.hosts.heartbeat(this.host.id, this.config.sandboxes.address);
  }

  private check(other: OtherHost | null): void {
    if (!other) {
      return;
    }
    const { address } = this.config.sandboxes;
    if (address === null) {
      throw new ConfigError(
        `HOST_ID: another host (${other.id}, seen ${other.secondsAgo} s ago) serves this database, and would not reach the sandboxes of this one (${this.host.id}): set SANDBOX_ADDRESS to an address of this machine, or use the same HOST_ID if it is the same machine`,
      );
    }
    if (other.address === null) {
      this.logger.warn('failed to reach the sandboxes of another host: it has no SANDBOX_ADDRESS', {
        host_id: other.id,
      });
    }
  }
}
