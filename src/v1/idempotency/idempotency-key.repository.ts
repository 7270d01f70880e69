import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, LessThan, Repository } from 'typeorm';
import { IdempotencyKey } from './idempotency-key.entity.js';

/** Names a row: the user, the route and the key. */
type IdempotencyKeyId = Pick<IdempotencyKey, 'userId' | 'scope' | 'key'>;

/** Rows of idempotency keys, read and written in the transaction that creates the resource. */
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

  /** @returns how many rows were removed */
  async removeCreatedBefore(moment: Date): Promise<number> {
    const { affected } = await this.keys.delete({ createdAt: LessThan(moment) });
    return affected ?? 0;
  }
}
