import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, LessThanOrEqual, Column, Entity, Index, UpdateDateColumn } from 'typeorm';
import { AuditRepository } from '../audit/audit.repository.js';
import { PausedWithKey } from '../auth/made-with-key.js';
import { OwnedRepository, OwnedThing } from '../auth/owned.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { columnById, SecretCipher, SecretDecryptionError } from '@slipway/common/secret-cipher.js';

/** Per user. */
export const MAX_ENDPOINTS = 10;

@Entity('webhook_endpoints')
@PausedWithKey('webhook_endpoint.update', {
  enabled: false,
  disabledReason: 'The API key that it was made with was revoked.',
})
@Index('webhook_endpoints_user_id_idx', ['userId'])
export class WebhookEndpoint extends OwnedThing {
  @Column('text') url: string;
  @Column('text', { nullable: true }) description: string | null;

  /** Types, or `*`. */
  @Column('text', { array: true }) events: string[];

  /** Encrypted. */
  @Column('text') secret: string;

  /** Encrypted; it signs as well until `previousUntil`. */
  @Column('text', { nullable: true }) previousSecret: string | null;
  @Column('timestamptz', { nullable: true }) previousUntil: Date | null;
  @Column('boolean', { default: true }) enabled: boolean;

  /** Set when the service has disabled the endpoint itself. */
  @Column('text', { nullable: true }) disabledReason: string | null;

  /** The attempt since which nothing has arrived. */
  @Column('timestamptz', { nullable: true }) failingSince: Date | null;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

const SECRET = columnById('webhook_endpoints', 'secret');
const PREVIOUS_SECRET = columnById('webhook_endpoints', 'previous_secret');
/** How long the previous secret signs too, so that receivers can take up the new one. */
const OVERLAP_MS = 86_400_000;

export const WEBHOOK_ENDPOINT_ENCRYPTED_COLUMNS = [SECRET, PREVIOUS_SECRET];

export type EndpointSecrets = Pick<WebhookEndpoint, 'id' | 'secret' | 'previousSecret' | 'previousUntil'>;

/** The noun in sentences for users. */
export const ENDPOINT = 'webhook endpoint';

export interface EndpointValues {
  url: string;
  description: string | null;
  events: string[];
  enabled: boolean;
  secret: string;
}

/** Encrypts the secrets that go in and decrypts those that come out. */
@Injectable()
export class WebhookEndpointRepository extends OwnedRepository<WebhookEndpoint> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    audit: AuditRepository,
  ) {
    const rules = { kind: 'webhook_endpoint', noun: ENDPOINT, most: MAX_ENDPOINTS } as const;
    super(WebhookEndpoint, dataSource, audit, rules);
  }

  /** Oldest first. */
  async listOf(userId: string): Promise<WebhookEndpoint[]> {
    return this.find({ where: { userId }, order: { createdAt: 'ASC', id: 'ASC' } });
  }

  /** @throws DomainError conflict when the user has {@link MAX_ENDPOINTS} */
  async add(userId: string, values: EndpointValues): Promise<WebhookEndpoint> {
    const id = randomUUID();
    const { row } = await this.addOf({ userId }, id, { ...values, ...this.encrypted(id, values.secret) });
    return row;
  }

  /** Enabling it clears the reason why it was disabled; what was changed has time to work. Throws as `getOf`. */
  async change(userId: string, id: string, given: Partial<EndpointValues>): Promise<WebhookEndpoint> {
    const { secret, enabled } = given;
    const change = (before: WebhookEndpoint): Partial<WebhookEndpoint> => ({
      ...given,
      failingSince: null,
      ...(secret !== undefined && { ...this.retired(before), ...this.encrypted(id, secret) }),
      ...(enabled !== undefined && { disabledReason: null }),
    });
    const isRotation = secret !== undefined && Object.keys(given).length === 1;
    const action = isRotation ? 'webhook_endpoint.rotate_secret' : undefined;
    return this.changeOf({ userId }, id, given, change, action);
  }

  /** Ends deliveries until the user enables the endpoint again, if it has failed since `failing`. */
  async disable(id: string, reason: string, failing?: Date): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const off = { enabled: false, disabledReason: reason };
      const which = { id, enabled: true, ...(failing && { failingSince: LessThanOrEqual(failing) }) };
      const { affected } = await manager.update(WebhookEndpoint, which, off);
      if (affected === 1) {
        const { userId } = await manager.findOneByOrFail(WebhookEndpoint, { id });
        const entry = { action: 'webhook_endpoint.disable', resourceId: id, ownerId: userId } as const;
        await this.audit.append(manager, { ...entry, by: 'service' });
      }
    });
  }

  /** The secrets in clear that sign now, the newest first. @throws SecretDecryptionError when the configured keys do not fit */
  secretsOf({ id, secret, previousSecret, previousUntil }: EndpointSecrets): string[] {
    const isKept = previousSecret !== null && Number(previousUntil) > this.clock.now();
    return [
      this.cipher.decrypt(secret, SECRET.binding({ id })),
      ...(isKept ? [this.cipher.decrypt(previousSecret, PREVIOUS_SECRET.binding({ id }))] : []),
    ];
  }

  private retired({
    id,
    secret,
  }: WebhookEndpoint): Pick<WebhookEndpoint, 'previousSecret' | 'previousUntil'> {
    try {
      const clear = this.cipher.decrypt(secret, SECRET.binding({ id }));
      return {
        previousSecret: this.cipher.encrypt(clear, PREVIOUS_SECRET.binding({ id })),
        previousUntil: new Date(this.clock.now() + OVERLAP_MS),
      };
    } catch (error) {
      // One whose key was lost has signed nothing, and is replaced for that.
      if (error instanceof SecretDecryptionError) {
        return { previousSecret: null, previousUntil: null };
      }
      throw error;
    }
  }

  private encrypted(id: string, secret: string): Pick<WebhookEndpoint, 'secret'> {
    return { secret: this.cipher.encrypt(secret, SECRET.binding({ id })) };
  }
}
