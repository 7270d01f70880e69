import { Injectable, Logger, Module } from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import type { EntityManager } from 'typeorm';
import { TypeOrmModule } from '@nestjs/typeorm';
import { lockUser } from '../../auth/user.repository.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { IdempotencyKeyRepository, IdempotencyKey } from './idempotency-key.repository.js';

const KEY_LIFETIME_MS = 24 * 3_600_000;
const PURGE_MS = 3_600_000;
/** Per user. Repetitions arrive soon after their request. */
const MAX_KEYS = 1_000;

const KEY = /^[\x21-\x7e]{1,255}$/;

interface IdempotentRequest {
  userId: string;
  scope: string;
  /** From `idempotencyKey`; null when the request is not idempotent. */
  key: string | null;
  /** SHA-256 of what the request asks for. */
  requestHash: Buffer;
}

/** Makes sure that a request which is sent twice with the same `Idempotency-Key` creates one resource. */
@Injectable()
export class IdempotencyService extends BackgroundLoop {
  constructor(
    private readonly keys: IdempotencyKeyRepository,
    private readonly clock: Clock,
  ) {
    const logger = new Logger(IdempotencyService.name);
    super(PURGE_MS, logger, 'failed to remove expired idempotency keys', 'warn');
  }

  /**
   * Runs `create` in the given transaction unless the key stands for an earlier request of the last 24 hours. The
   * user's row is locked, so that requests of one user wait for each other. Returns the id of what was created.
   * @throws InvalidInputError when the key stands for another request
   */
  async run(
    manager: EntityManager,
    { userId, scope, key, requestHash }: IdempotentRequest,
    create: () => Promise<string>,
  ): Promise<string> {
    if (key === null) {
      return await create();
    }
    await lockUser(manager, userId);
    const now = this.clock.now();
    const known = await this.keys.find(manager, { userId, scope, key });
    if (known && known.createdAt.getTime() > now - KEY_LIFETIME_MS) {
      if (!known.requestHash.equals(requestHash)) {
        throw invalidKey('This key was used for a request with another content; use a new one.');
      }
      return known.resourceId;
    }
    const resourceId = await create();
    await this.keys.save(manager, { userId, scope, key, requestHash, resourceId, createdAt: new Date(now) });
    await this.keys.removeAllBut(manager, userId, MAX_KEYS);
    return resourceId;
  }

  protected async work(): Promise<void> {
    await this.purge();
  }

  async purge(): Promise<number> {
    return this.keys.removeCreatedBefore(new Date(this.clock.now() - KEY_LIFETIME_MS));
  }
}

/** @param made what a repetition answers again */
export function ApiIdempotencyKey(made: string, example: string, period = 'for 24 hours'): MethodDecorator {
  return ApiHeader({
    name: 'Idempotency-Key',
    description: `A repetition of the request under this key answers the same ${made}, ${period}.`,
    schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
    example,
  });
}

/** Returns null when the header is missing. Throws InvalidInputError unless it is 1 to 255 printable characters. */
export function idempotencyKey(header: string | undefined): string | null {
  if (header === undefined) {
    return null;
  }
  if (!KEY.test(header)) {
    throw invalidKey('Expected 1 to 255 printable characters without spaces.');
  }
  return header;
}

export function invalidKey(msg: string): InvalidInputError {
  return new InvalidInputError({ loc: ['header', 'Idempotency-Key'], msg, type: 'value_error' });
}

@Module({
  imports: [TypeOrmModule.forFeature([IdempotencyKey])],
  providers: [IdempotencyKeyRepository, IdempotencyService],
  exports: [IdempotencyService],
})
export class IdempotencyModule {}
