import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { AuditRepository } from '../audit/audit.repository.js';
import { lockUser } from '../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '../common/crypto/secret-cipher.js';
import { MAX_ENDPOINTS, WebhookEndpoint } from './webhook-endpoint.entity.js';

/** What an encrypted signing secret is bound to: copied to another endpoint it does not decrypt. */
function secretBinding(id: string): string {
  return `webhook_endpoints.secret:${id}`;
}

/** The encrypted column of this table. */
export const WEBHOOK_ENDPOINT_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'webhook_endpoints',
    column: 'secret',
    keyColumns: ['id'],
    binding: ({ id = '' }) => secretBinding(id),
  },
];

/** What users configure of an endpoint; the secret in clear. */
export interface EndpointValues {
  url: string;
  description: string | null;
  events: string[];
  enabled: boolean;
  secret: string;
}

/** The `webhook_endpoints` table: encrypts the secrets that go in and decrypts those that come out. */
@Injectable()
export class WebhookEndpointRepository extends Repository<WebhookEndpoint> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(WebhookEndpoint, dataSource.manager);
  }

  /** The oldest first. */
  async listOf(userId: string): Promise<WebhookEndpoint[]> {
    return this.find({ where: { userId }, order: { createdAt: 'ASC', id: 'ASC' } });
  }

  async findOf(userId: string, id: string): Promise<WebhookEndpoint | null> {
    return this.findOneBy({ userId, id });
  }

  /** @returns null when the user has the maximum of endpoints */
  async add(userId: string, { secret, ...values }: EndpointValues): Promise<WebhookEndpoint | null> {
    const id = randomUUID();
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      if ((await manager.countBy(WebhookEndpoint, { userId })) >= MAX_ENDPOINTS) {
        return null;
      }
      await manager.insert(WebhookEndpoint, { id, userId, ...values, secret: this.encrypt(id, secret) });
      await this.audit.append(manager, {
        action: 'webhook_endpoint.create',
        resourceId: id,
        ownerId: userId,
      });
      return manager.findOneByOrFail(WebhookEndpoint, { id });
    });
  }

  /**
   * Changes the given members. Enabling an endpoint clears the reason why it was disabled.
   *
   * @returns null when the user has no such endpoint
   */
  async change(userId: string, id: string, change: Partial<EndpointValues>): Promise<WebhookEndpoint | null> {
    const { secret, ...values } = change;
    const members = Object.entries(change).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    return this.manager.transaction(async (manager) => {
      const { affected } = await manager.update(
        WebhookEndpoint,
        { userId, id },
        {
          ...values,
          ...(secret !== undefined && { secret: this.encrypt(id, secret) }),
          ...(values.enabled !== undefined && { disabledReason: null }),
          updatedAt: () => 'now()',
        },
      );
      if (affected === 1) {
        const isRotation = members.length === 1 && secret !== undefined;
        await this.audit.append(manager, {
          action: isRotation ? 'webhook_endpoint.rotate_secret' : 'webhook_endpoint.update',
          resourceId: id,
          ownerId: userId,
          details: { members },
        });
      }
      return manager.findOneBy(WebhookEndpoint, { userId, id });
    });
  }

  /** @returns whether the user had such an endpoint; its deliveries are gone with it */
  async removeOf(userId: string, id: string): Promise<boolean> {
    return this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(WebhookEndpoint, { userId, id });
      if (affected !== 1) {
        return false;
      }
      await this.audit.append(manager, {
        action: 'webhook_endpoint.delete',
        resourceId: id,
        ownerId: userId,
      });
      return true;
    });
  }

  /** Ends deliveries to an endpoint until its user enables it again. */
  async disable(id: string, reason: string): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const off = { enabled: false, disabledReason: reason };
      const { affected } = await manager.update(WebhookEndpoint, { id, enabled: true }, off);
      if (affected === 1) {
        const { userId } = await manager.findOneByOrFail(WebhookEndpoint, { id });
        const entry = { action: 'webhook_endpoint.disable', resourceId: id, ownerId: userId } as const;
        await this.audit.append(manager, { ...entry, by: 'service' });
      }
    });
  }

  /**
   * The signing secret in clear.
   *
   * @throws SecretDecryptionError when it is not readable with the configured keys
   */
  secretOf({ id, secret }: Pick<WebhookEndpoint, 'id' | 'secret'>): string {
    return this.cipher.decrypt(secret, secretBinding(id));
  }

  private encrypt(id: string, secret: string): string {
    return this.cipher.encrypt(secret, secretBinding(id));
  }
}
