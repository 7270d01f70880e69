import { hash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  Column,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  PrimaryColumn,
  Repository,
  Unique,
} from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { RemovedWithKey } from '../../auth/made-with-key.js';
import { keyBehind } from '../../auth/owned.repository.js';
import { lockUser, OwnedRow } from '../../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { columnById, SecretCipher } from '@slipway/common/secret-cipher.js';
import type { PushKind } from './push-notification.js';

/** What a browser tells of its subscription. */
export interface BrowserSubscription {
  endpoint: string;
  /** Keys in base64url. */
  keys: { p256dh: string; auth: string };
}

/** A browser in which a user wants notifications. */
@Entity('push_subscriptions')
@Unique('push_subscriptions_endpoint_hash_key', ['endpointHash'])
@Index('push_subscriptions_user_id_idx', ['userId', 'createdAt'])
@RemovedWithKey('push_subscription.delete')
export class PushSubscription extends OwnedRow {
  @PrimaryColumn('uuid') id: string;

  /** Who knows the address can send there, so it is encrypted, and found by this. */
  @Column('text') endpointHash: string;

  /** Encrypted JSON of a `BrowserSubscription`. */
  @Column('text') subscription: string;
  @Column('text', { array: true }) kinds: PushKind[];
  @Column('timestamptz') createdAt: Date;

  /** Id of the key that it was made with. */
  @Column('text', { nullable: true }) madeByKey: string | null;
}

const SUBSCRIPTION = columnById('push_subscriptions', 'subscription');

export const PUSH_SUBSCRIPTION_ENCRYPTED_COLUMNS = [SUBSCRIPTION];

/** Browsers of one user. */
export const MAX_SUBSCRIPTIONS = 20;

/** Users who sign in at one browser at a time take turns: the last one has it. */
const LOCK_ENDPOINT = "SELECT pg_advisory_xact_lock(hashtext('push_subscriptions'), hashtext($1))";

const FORGET_OLDEST = `
  DELETE FROM push_subscriptions WHERE user_id = $1 AND id IN (
    SELECT id FROM push_subscriptions WHERE user_id = $1 ORDER BY created_at DESC, id OFFSET ${MAX_SUBSCRIPTIONS})`;

@Injectable()
export class PushSubscriptionRepository extends Repository<PushSubscription> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    private readonly audit: AuditRepository,
  ) {
    super(PushSubscription, dataSource.manager);
  }

  /** Oldest first. */
  async listOf(userId: string): Promise<(PushSubscription & BrowserSubscription)[]> {
    const rows = await this.find({ where: { userId }, order: { createdAt: 'ASC', id: 'ASC' } });
    return rows.map((row) => Object.assign(row, this.browserOf(row)));
  }

  /**
   * Adds it, or replaces what was known of the same browser, also by another user who has signed in there before. Of a user
   * the newest stay.
   * @throws DomainError unauthorized where the key has ended meanwhile
   */
  async put(userId: string, browser: BrowserSubscription, kinds: PushKind[]): Promise<PushSubscription> {
    const id = randomUUID();
    const endpointHash = hashOf(browser.endpoint);
    const subscription = this.cipher.encrypt(JSON.stringify(browser), SUBSCRIPTION.binding({ id }));
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const madeByKey = await keyBehind(manager);
      await manager.query(LOCK_ENDPOINT, [endpointHash]);
      const former = await manager.findOneBy(PushSubscription, { endpointHash });
      await manager.delete(PushSubscription, { endpointHash });
      if (former !== null && former.userId !== userId) {
        await this.noteRemoved(manager, former);
      }
      const createdAt = new Date(this.clock.now());
      const row = { id, userId, endpointHash, subscription, kinds, createdAt, madeByKey };
      await manager.insert(PushSubscription, row);
      await manager.query(FORGET_OLDEST, [userId]);
      const entry = { action: 'push_subscription.create', resourceId: id, ownerId: userId } as const;
      await this.audit.append(manager, entry);
      return manager.findOneByOrFail(PushSubscription, { id });
    });
  }

  /** Nothing happens where the user has no such subscription. */
  async removeAt(userId: string, endpoint: string): Promise<void> {
    const row = await this.findOneBy({ userId, endpointHash: hashOf(endpoint) });
    if (row !== null) {
      await this.drop(row);
    }
  }

  /** Deletes a subscription with the messages that wait for it. @param by the service, if the browser's subscription is gone */
  async drop({ id, userId }: Pick<PushSubscription, 'id' | 'userId'>, by?: 'service'): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(PushSubscription, { id });
      if (affected === 1) {
        await this.noteRemoved(manager, { id, userId }, by);
      }
    });
  }

  private async noteRemoved(
    manager: EntityManager,
    { id, userId }: Pick<PushSubscription, 'id' | 'userId'>,
    by?: 'service',
  ): Promise<void> {
    const entry = { action: 'push_subscription.delete', resourceId: id, ownerId: userId } as const;
    await this.audit.append(manager, { ...entry, ...(by && { by }) });
  }

  /** @throws SecretDecryptionError */
  browserOf({ id, subscription }: Pick<PushSubscription, 'id' | 'subscription'>): BrowserSubscription {
    return JSON.parse(this.cipher.decrypt(subscription, SUBSCRIPTION.binding({ id }))) as BrowserSubscription;
  }
}

function hashOf(endpoint: string): string {
  return hash('sha256', endpoint, 'base64url');
}
