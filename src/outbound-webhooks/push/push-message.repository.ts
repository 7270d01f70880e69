import { Injectable } from '@nestjs/common';
import {
  Column,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  Unique,
} from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { type Lease, LeasedRows, type LeasedTable } from '@slipway/database/leased-rows.js';
import type { WebhookEvent } from '../webhook-event.js';
import { notificationOf, type PushNotification } from './push-notification.js';
import { PushSubscription } from './push-subscription.repository.js';

/** What waits to be sent to a browser: of one thing the newest. */
@Entity('push_messages')
@Unique('push_messages_subscription_id_topic_key', ['subscriptionId', 'topic'])
@Index('push_messages_due_at_idx', ['dueAt'])
export class PushMessage {
  @PrimaryColumn('uuid') id: string;
  @Column('uuid') subscriptionId: string;

  @ManyToOne(() => PushSubscription, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'subscription_id' })
  subscription?: PushSubscription;

  @Column('text') topic: string;
  @Column('json') message: PushNotification;
  @Column('timestamptz') createdAt: Date;
  @Column('timestamptz', { nullable: true }) dueAt: Date | null;
  @Column('text', { nullable: true }) leasedBy: string | null;
  @Column('timestamptz', { nullable: true }) leasedUntil: Date | null;
  @Column('integer', { default: 0 }) attempts: number;
}

/** Messages that may wait for one subscription; beyond that, none is added. */
export const MAX_WAITING = 50;

const CHANNEL = 'push_messages';

/** Locks rows in the order of ids, so that statements of two transactions do not wait for each other. */
const PUBLISH = `
  WITH wanted AS (
    SELECT id FROM push_subscriptions WHERE user_id = $1 AND $2::text = ANY (kinds) ORDER BY id FOR KEY SHARE),
  added AS (
    INSERT INTO push_messages (id, subscription_id, topic, message, created_at, due_at)
    SELECT gen_random_uuid(), id, $3, $4::json, $5, $5 FROM wanted
    WHERE (SELECT count(*) FROM push_messages WHERE subscription_id = wanted.id) < ${MAX_WAITING}
    ON CONFLICT (subscription_id, topic)
    DO UPDATE SET message = EXCLUDED.message, created_at = EXCLUDED.created_at, due_at = EXCLUDED.due_at, attempts = 0
    RETURNING 1)
  SELECT pg_notify('${CHANNEL}', '') FROM added LIMIT 1`;

const LEASED: LeasedTable = {
  table: 'push_messages',
  key: { column: 'id', type: 'uuid' },
  owner: '(SELECT user_id FROM push_subscriptions WHERE id = r.subscription_id)',
  condition: 'true',
  returning: `r.message, r.created_at AS "createdAt", s.id AS "subscriptionId", s.user_id AS "userId", s.subscription`,
  join: 'JOIN push_subscriptions s ON s.id = r.subscription_id',
  channel: CHANNEL,
};

/** Another one about the same may have come while it was sent. */
const REMOVE = `
  DELETE FROM push_messages WHERE id = $1 AND leased_by = $2 AND due_at = leased_until RETURNING id`;

/** Leased, with what its attempt needs of its subscription. */
export interface LeasedMessage extends Lease, Pick<PushMessage, 'subscriptionId' | 'message' | 'createdAt'> {
  userId: string;
  /** Encrypted. */
  subscription: string;
}

@Injectable()
export class PushMessageRepository {
  readonly leases: LeasedRows<LeasedMessage>;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {
    this.leases = new LeasedRows(dataSource, clock, LEASED);
  }

  /** Queues what a user's browsers are told of an event; it is sent once the caller's transaction is committed. */
  async publish(manager: EntityManager, userId: string, event: WebhookEvent): Promise<void> {
    const message = notificationOf(event);
    if (message !== null) {
      const now = new Date(this.clock.now());
      await manager.query(PUBLISH, [userId, message.kind, message.topic, JSON.stringify(message), now]);
    }
  }

  /** False where a newer one has taken its place. */
  async remove({ id, leasedBy }: Lease): Promise<boolean> {
    const [rows] = await this.dataSource.query<[unknown[], number]>(REMOVE, [id, leasedBy]);
    return rows.length === 1;
  }
}
