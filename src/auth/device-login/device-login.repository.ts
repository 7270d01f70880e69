import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  type FindOptionsWhere,
  Index,
  IsNull,
  JoinColumn,
  ManyToOne,
  MoreThan,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { ApiKey } from '../api-key.repository.js';

export const VALID_MS = 600_000;
/** Logins that wait at a time: of all addresses, and of one. */
const MOST = { all: 10_000, ofAddress: 50 };

/** A device that waits for a person to let it in. Both codes are stored as their SHA-256. */
@Entity('device_logins')
@Index('device_logins_user_code_key', ['userCodeHash'], { unique: true })
@Index('device_logins_address_idx', ['address', 'createdAt'])
@Index('device_logins_created_at_idx', ['createdAt'])
@Index('device_logins_api_key_id_idx', ['apiKeyId'])
export class DeviceLogin {
  @PrimaryColumn('bytea') deviceCodeHash: Buffer;
  @Column('bytea') userCodeHash: Buffer;

  /** The name that the client gives itself. */
  @Column('text') client: string;
  @Column('text') address: string;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @Column('timestamptz', { nullable: true }) polledAt: Date | null;
  @Column('integer') intervalSeconds: number;
  @Column('boolean', { default: false }) isDenied: boolean;

  /** Set once it is approved: the key whose secret it will be told. */
  @Column('text', { nullable: true }) apiKeyId: string | null;

  @ManyToOne(() => ApiKey, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'api_key_id' })
  apiKey?: ApiKey | null;
}

export type NewDeviceLogin = Pick<
  DeviceLogin,
  'deviceCodeHash' | 'userCodeHash' | 'client' | 'address' | 'intervalSeconds'
>;

/** Requests of one address take turns, so that its bound is exact. */
const LOCK_ADDRESS = "SELECT pg_advisory_xact_lock(hashtext('device_logins'), hashtext($1))";

/** `$7` is the time after which the logins of today began. */
const ADD = `
  INSERT INTO device_logins (device_code_hash, user_code_hash, client, address, interval_seconds, created_at)
  SELECT $1, $2, $3, $4, $5, $6
  WHERE (SELECT count(*) FROM device_logins WHERE created_at > $7) < ${MOST.all}
    AND (SELECT count(*) FROM device_logins WHERE address = $4 AND created_at > $7) < ${MOST.ofAddress}
  ON CONFLICT DO NOTHING RETURNING address`;

/** Later than they end, so that a slow client learns that it is too late. */
const FORGET = 'DELETE FROM device_logins WHERE created_at <= $1 RETURNING api_key_id';
const FORGET_MS = 2 * VALID_MS;

@Injectable()
export class DeviceLoginRepository extends Repository<DeviceLogin> {
  constructor(dataSource: DataSource) {
    super(DeviceLogin, dataSource.manager);
  }

  /** False when as many wait as may. */
  async add(login: NewDeviceLogin, now: Date): Promise<boolean> {
    const { deviceCodeHash, userCodeHash, client, address, intervalSeconds } = login;
    const values = [deviceCodeHash, userCodeHash, client, address, intervalSeconds, now];
    return this.manager.transaction(async (manager) => {
      await manager.query(LOCK_ADDRESS, [address]);
      const added = await manager.query<unknown[]>(ADD, [...values, before(now, VALID_MS)]);
      return added.length === 1;
    });
  }

  /** Removes those that ended long ago; returns the keys that their devices never fetched. */
  async forgetOld(now: Date): Promise<string[]> {
    const [rows] = await this.query<[{ api_key_id: string | null }[], number]>(FORGET, [
      before(now, FORGET_MS),
    ]);
    return rows.flatMap(({ api_key_id: id }) => id ?? []);
  }

  async findPending(userCodeHash: Buffer, now: Date): Promise<DeviceLogin | null> {
    return this.findOneBy(pending(userCodeHash, now));
  }

  /** Decides about one that is pending; false for one that is no longer, or never was. */
  async decide(
    manager: EntityManager,
    userCodeHash: Buffer,
    decision: Partial<Pick<DeviceLogin, 'apiKeyId' | 'isDenied'>>,
    now: Date,
  ): Promise<boolean> {
    const { affected } = await manager.update(DeviceLogin, pending(userCodeHash, now), decision);
    return affected === 1;
  }

  /** Runs a transaction that locks the login of a device code. */
  async locked<T>(
    deviceCodeHash: Buffer,
    work: (manager: EntityManager, login: DeviceLogin | null) => Promise<T>,
  ): Promise<T> {
    const where = { deviceCodeHash };
    return this.manager.transaction(async (manager) =>
      work(manager, await manager.findOne(DeviceLogin, { where, lock: { mode: 'pessimistic_write' } })),
    );
  }
}

function pending(userCodeHash: Buffer, now: Date): FindOptionsWhere<DeviceLogin> {
  return { userCodeHash, apiKeyId: IsNull(), isDenied: false, createdAt: MoreThan(before(now, VALID_MS)) };
}

function before(now: Date, ms: number): Date {
  return new Date(now.getTime() - ms);
}
