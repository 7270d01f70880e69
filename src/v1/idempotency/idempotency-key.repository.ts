import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  Column,
  CreateDateColumn,
  Entity,
  type EntityManager,
  Index,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { UserKeyedRow } from '../../auth/user.repository.js';

/** What a request with an `Idempotency-Key` created, so that its repetition gets the same response. */
@Entity('idempotency_keys')
@Index('idempotency_keys_created_at_idx', ['createdAt'])
export class IdempotencyKey extends UserKeyedRow {
  /** The route, because two routes may be called with the same key. */
  @PrimaryColumn('text') scope: string;
  @PrimaryColumn('text') key: string;

  /** SHA-256 of the request. */
  @Column('bytea') requestHash: Buffer;
  @Column('text') resourceId: string;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
}

type IdempotencyKeyId = Pick<IdempotencyKey, 'userId' | 'scope' | 'key'>;

const REMOVE_BEYOND = `
  DELETE FROM idempotency_keys WHERE user_id = $1 AND (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE user_id = $1 ORDER BY created_at DESC OFFSET $2)`;

/** Small enough that no request waits long for a row that a batch has locked. */
const REMOVE_BATCH = 5_000;

const REMOVE_CREATED_BEFORE = `
  DELETE FROM idempotency_keys WHERE (user_id, scope, key) IN (
    SELECT user_id, scope, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT ${REMOVE_BATCH})
    AND created_at < $1`;

@Injectable()
export class IdempotencyKeyRepository {
  constructor(@InjectRepository(IdempotencyKey) private readonly keys: Repository<IdempotencyKey>) {}

  async find(
    manager: EntityManager,
    { userId, scope, key }: IdempotencyKeyId,
  ): Promise<IdempotencyKey | null> {
    return manager.findOneBy(IdempotencyKey, { userId, scope, key });
  }

  /** Replaces an older row of the same key. */
  async save(manager: EntityManager, row: Omit<IdempotencyKey, 'user'>): Promise<void> {
    await manager.upsert(IdempotencyKey, row, ['userId', 'scope', 'key']);
  }

  /** Removes all keys of a user except the newest. */
  async removeAllBut(manager: EntityManager, userId: string, newest: number): Promise<void> {
    await manager.query(REMOVE_BEYOND, [userId, newest]);
  }

  /** Removes rows in batches, and returns their number. */
  async removeCreatedBefore(moment: Date): Promise<number> {
    let removed = 0;
    let batch: number;
    do {
      [, batch] = await this.keys.query<[unknown, number]>(REMOVE_CREATED_BEFORE, [moment]);
      removed += batch;
    } while (batch === REMOVE_BATCH);
    return removed;
  }
}
