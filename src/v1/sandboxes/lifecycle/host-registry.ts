import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { RepeatedWork } from '../../../common/async.js';
import { AppConfig } from '../../../config/app-config.js';
import { ConfigError } from '../../../config/config.error.js';
import { HostIdentity } from '../host-identity.js';

const BEAT_MS = 5_000;
/** A host that has not been seen for so long serves no more. */
const LIVE_SECONDS = 20;
/** Any number that no other advisory lock of ours has. */
const LOCK = 7_305_218_442;

const OTHERS = `
  SELECT id, address, ceil(extract(epoch FROM now() - seen_at))::integer AS seconds
  FROM sandbox_hosts
  WHERE id <> $1 AND seen_at > now() - make_interval(secs => $2)
  ORDER BY seen_at DESC`;

const BEAT = `
  INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ($1, $2, now())
  ON CONFLICT (id) DO UPDATE SET address = excluded.address, seen_at = excluded.seen_at`;

interface OtherHost {
  id: string;
  address: string | null;
  seconds: number;
}

/** Registers this host, so that replicas on two machines notice when they cannot reach each other's sandboxes. */
@Injectable()
export class HostRegistry implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly loop = new RepeatedWork(
    BEAT_MS,
    () => this.beat(),
    (error) => {
      this.logger.warn('this host could not say that it is there', { error: String(error) });
    },
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly host: HostIdentity,
    private readonly config: AppConfig,
  ) {}

  /** @throws ConfigError when another host serves this database and this one gives no address to reach it at */
  async onModuleInit(): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      // Two hosts that start at the same time take turns, and the second one sees the first.
      await manager.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
      const [other] = await manager.query<OtherHost[]>(OTHERS, [this.host.id, LIVE_SECONDS]);
      this.judge(other);
      await manager.query(BEAT, [this.host.id, this.config.sandboxes.address]);
    });
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  /** Another replica of this host, if there is one, registers it again within seconds. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
    try {
      await this.dataSource.query('DELETE FROM sandbox_hosts WHERE id = $1', [this.host.id]);
    } catch (error) {
      // It is taken for gone within seconds anyway; a stop must not fail because the database is down.
      this.logger.warn('this host could not say that it leaves', { error: String(error) });
    }
  }

  private judge(other: OtherHost | undefined): void {
    if (!other) {
      return;
    }
    const { address } = this.config.sandboxes;
    if (address === null) {
      throw new ConfigError(
        `HOST_ID: another host (${other.id}, seen ${other.seconds} s ago) serves this database, and would not reach the sandboxes of this one (${this.host.id}): set SANDBOX_ADDRESS to an address of this machine, or use the same HOST_ID if it is the same machine`,
      );
    }
    if (other.address === null) {
      this.logger.warn(
        `host ${other.id} serves this database without a SANDBOX_ADDRESS: its sandboxes cannot be reached from here`,
      );
    }
  }

  private async beat(): Promise<void> {
    await this.dataSource.query(BEAT, [this.host.id, this.config.sandboxes.address]);
  }
}
