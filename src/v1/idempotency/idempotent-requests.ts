import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockUser } from '../../auth/lock-user.js';
import { Clock } from '../../common/clock.js';
import { InvalidInputError } from '../../common/errors/invalid-input.error.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { KEPT_MS } from './idempotency-limits.js';

/** What came of a request. */
export interface IdempotentOutcome {
  resourceId: string;
  /** It had been made by an earlier request with the same key. */
  repeated: boolean;
}

/** Makes sure that a request which is sent twice under one `Idempotency-Key` makes one thing. */
@Injectable()
export class IdempotentRequests {
  constructor(private readonly clock: Clock) {}

  /**
   * Makes the resource, unless a request of the last 24 hours made it under this key.
   *
   * @param manager the transaction that the resource is made in; requests of one user take turns in it
   * @param scope which route: the same key may be used on two
   * @param key the header's value as `idempotencyKey` checked it; null: the request is like any other
   * @param requestHash SHA-256 of what the request asks for
   * @param create makes the resource in the transaction and gives its id
   * @throws InvalidInputError when the key stands for another request
   */
  async run(
    manager: EntityManager,
    userId: string,
    scope: string,
    key: string | null,
    requestHash: Buffer,
    create: () => Promise<string>,
  ): Promise<IdempotentOutcome> {
    if (key === null) {
      return { resourceId: await create(), repeated: false };
    }
    await lockUser(manager, userId);
    const keys = manager.getRepository(IdempotencyKey);
    const now = this.clock.now();
    const known = await keys.findOneBy({ userId, scope, key });
    if (known && known.createdAt.getTime() > now - KEPT_MS) {
      if (!known.requestHash.equals(requestHash)) {
        throw new InvalidInputError([
          {
            loc: ['header', 'Idempotency-Key'],
            msg: 'This key was used for a request with another content; use a new one.',
            type: 'value_error',
          },
        ]);
      }
      return { resourceId: known.resourceId, repeated: true };
    }
    const resourceId = await create();
    // A key of an earlier day may be there still.
    await keys.upsert({ userId, scope, key, requestHash, resourceId, createdAt: new Date(now) }, [
      'userId',
      'scope',
      'key',
    ]);
    return { resourceId, repeated: false };
  }
}
