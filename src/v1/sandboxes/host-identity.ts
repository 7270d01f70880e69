import { link, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { unlessCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { randomBase62 } from '@slipway/common/identifiers.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { makeDataDir } from '../../config/data-dir.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { AppConfig } from '../../config/app-config.js';
import { type OtherHost, SandboxHostRepository } from './sandbox-host.repository.js';

export class HostIdentity {
  /** Names this process in leases; no earlier or later process has the same. */
  readonly processId: string;

  /** @param id `HOST_ID`, or what is kept in `DATA_DIR` */
  constructor(readonly id: string) {
    this.processId = `${id}/${randomBase62(16)}`;
  }
}

const HOST_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** Replicas that share `DATA_DIR/host-id` share the host's sandboxes. @throws ConfigError for a broken file */
export async function loadHostId(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'host-id');
  const known = await readHostId(file);
  if (known !== null) {
    return known;
  }
  await makeDataDir(dataDir);
  const draft = `${file}.${process.pid}.${randomBase62(6)}`;
  await writeFile(draft, `${randomBase62(12)}\n`, { mode: 0o644 });
  // When two services start for the first time at once, one link succeeds and both read its id.
  await unlessCode('EEXIST', link(draft, file)).finally(() => rm(draft, { force: true }));
  return (await readHostId(file)) ?? loadHostId(dataDir);
}

async function readHostId(file: string): Promise<string | null> {
  const id = (await unlessCode('ENOENT', readFile(file, 'utf8')))?.trim() ?? null;
  if (id !== null && !HOST_ID.test(id)) {
    throw new ConfigError(`HOST_ID: ${file} holds no usable id; remove it, or set HOST_ID`);
  }
  return id;
}

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

  private check(other: OtherHost): void {
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
