import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { lockUser } from '../../auth/user.repository.js';
import { Clock } from '../../common/clock.js';
import { InvalidInputError } from '../../common/errors/domain-error.js';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';

/** How long a key stands for its request. */
const KEY_LIFETIME_MS = 24 * 3_600_000;
const PURGE_MS = 3_600_000;
/** Limit for each user. Repetitions arrive soon after their request, so older keys are no longer needed. */
const MAX_KEYS = 1_000;

const KEY = /^[\x21-\x7e]{1,255}$/;

/** A request that may be sent twice. */
interface IdempotentRequest {
  userId: string;
  /** The route, because two routes may be called with the same key. */
  scope: string;
  /** The header's value as `idempotencyKey` returned it; null: the request is not idempotent. */
  key: string | null;
  /** SHA-256 of what the request asks for. */
  requestHash: Buffer;
}

/** The resource of a request. */
interface IdempotentOutcome {
  resourceId: string;
  /** Whether an earlier request with the same key created it. */
  repeated: boolean;
}

/** Makes sure that a request which is sent twice with the same `Idempotency-Key` creates one resource. */
@Injectable()
export class IdempotencyService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(IdempotencyService.name);
  private readonly purging = new RepeatedWork(
    PURGE_MS,
    async () => void (await this.purge()),
    (error) => {
      this.logger.warn('failed to remove expired idempotency keys', { error: errorMessage(error) });
    },
  );

  constructor(
    private readonly keys: IdempotencyKeyRepository,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.purging.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.purging.stop();
  }

  /**
   * Creates the resource, unless a request of the last 24 hours created it under this key. Only the newest thousand keys
   * of each user are kept.
   *
   * @param manager the transaction that creates the resource; it locks the user, so that requests of one user wait for
   *   each other
   * @param create creates the resource in the transaction and returns its id
   * @throws InvalidInputError when the key stands for another request
   */
  async run(
    manager: EntityManager,
    { userId, scope, key, requestHash }: IdempotentRequest,
    create: () => Promise<string>,
  ): Promise<IdempotentOutcome> {
    if (key === null) {
      return { resourceId: await create(), repeated: false };
    }
    await lockUser(manager, userId);
    const now = this.clock.now();
    const known = await this.keys.find(manager, { userId, scope, key });
    if (known && known.createdAt.getTime() > now - KEY_LIFETIME_MS) {
      if (!known.requestHash.equals(requestHash)) {
        throw invalidKey('This key was used for a request with another content; use a new one.');
      }
      return { resourceId: known.resourceId, repeated: true };
    }
    const resourceId = await create();
    await this.keys.save(manager, { userId, scope, key, requestHash, resourceId, createdAt: new Date(now) });
    await this.keys.removeAllBut(manager, userId, MAX_KEYS);
    return { resourceId, repeated: false };
  }

  /** @returns how many expired keys were removed */
  async purge(): Promise<number> {
    return this.keys.removeCreatedBefore(new Date(this.clock.now() - KEY_LIFETIME_MS));
  }
}

/**
 * The value of an `Idempotency-Key` header; null when there is none.
 *
 * @throws InvalidInputError when it is not 1 to 255 printable characters
 */
export function idempotencyKey(header: string | undefined): string | null {
  if (header === undefined) {
    return null;
  }
  if (!KEY.test(header)) {
    throw invalidKey('Expected 1 to 255 printable characters without spaces.');
  }
  return header;
}

function invalidKey(msg: string): InvalidInputError {
  return new InvalidInputError([{ loc: ['header', 'Idempotency-Key'], msg, type: 'value_error' }]);
}
