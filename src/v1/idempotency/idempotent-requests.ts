import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  Column,
  CreateDateColumn,
  Entity,
  type EntityManager,
  Index,
  JoinColumn,
  LessThan,
  ManyToOne,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { lockUser } from '../../auth/user.repository.js';
import { User } from '../../auth/user.entity.js';
import { Clock } from '../../common/clock.js';
import { InvalidInputError } from '../../common/errors/domain-error.js';

/** What a request with an `Idempotency-Key` made, so that its repetition answers the same. */
@Entity('idempotency_keys')
@Index('idempotency_keys_created_at_idx', ['createdAt'])
export class IdempotencyKey {
  @PrimaryColumn('uuid', { name: 'user_id', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'idempotency_keys_user_id_fkey' })
  user?: User;

  /** Which route: the same key may be used on two. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'idempotency_keys_pkey' })
  scope: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key: string;

  /** SHA-256 of the request. */
  @Column('bytea', { name: 'request_hash' })
  requestHash: Buffer;

  @Column('text', { name: 'resource_id' })
  resourceId: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}

/** How long a key stands for its request, milliseconds. */
const KEPT_MS = 24 * 3_600_000;

const EVERY_MS = 3_600_000;

/** Forgets keys that stand for nothing any more, once an hour. */
@Injectable()
export class IdempotencyPurge implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(IdempotencyPurge.name);
  private timer: NodeJS.Timeout | undefined;

  constructor(
    @InjectRepository(IdempotencyKey) private readonly keys: Repository<IdempotencyKey>,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.purge().catch((error: unknown) => {
        this.logger.warn('old idempotency keys were not removed', { error: String(error) });
      });
    }, EVERY_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  /** @returns how many were removed */
  async purge(): Promise<number> {
    const { affected } = await this.keys.delete({
      createdAt: LessThan(new Date(this.clock.now() - KEPT_MS)),
    });
    return affected ?? 0;
  }
}

/** What came of a request. */
interface IdempotentOutcome {
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

const KEY = /^[\x21-\x7e]{1,255}$/;

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
    throw new InvalidInputError([
      {
        loc: ['header', 'Idempotency-Key'],
        msg: 'Expected 1 to 255 printable characters without spaces.',
        type: 'value_error',
      },
    ]);
  }
  return header;
}
