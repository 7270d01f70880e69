import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { AuditRepository } from '../audit/audit.repository.js';
import { lockUser } from '../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '../common/crypto/secret-cipher.js';
import { MAX_ENDPOINTS, WebhookEndpoint } from './webhook-endpoint.entity.js';

/** Binds an encrypted secret: copied to another endpoint it does not decrypt. */
function secretBinding(id: string): string {
  return `webhook_endpoints.secret:${id}`;
}

export const WEBHOOK_ENDPOINT_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'webhook_endpoints',
    column: 'secret',
    keyColumns: ['id'],
    binding: ({ id = '' }) => secretBinding(id),
  },
];

export interface EndpointValues {
  url: string;
  description: string | null;
  events: string[];
  enabled: boolean;
  secret: string;
}

/** Encrypts the secrets that go in and decrypts those that come out. */
@Injectable()
export class WebhookEndpointRepository extends Repository<WebhookEndpoint> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(WebhookEndpoint, dataSource.manager);
  }

  /** Oldest first. */
  async listOf(userId: string): Promise<WebhookEndpoint[]> {
    return this.find({ where: { userId }, order: { createdAt: 'ASC', id: 'ASC' } });
  }

  async findOf(userId: string, id: string): Promise<WebhookEndpoint | null> {
    return this.findOneBy({ userId, id });
  }

  /** Adds an endpoint; null when the user has {@link MAX_ENDPOINTS}. */
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

  /** Changes an endpoint; null for an unknown one. Enabling it clears the reason why it was disabled. */
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

  /** Removes an endpoint with its deliveries; false for an unknown one. */
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

  /** Ends deliveries until the user enables the endpoint again. */
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

  /** The secret in clear. @throws SecretDecryptionError when the configured keys do not fit */
  secretOf({ id, secret }: Pick<WebhookEndpoint, 'id' | 'secret'>): string {
    return this.cipher.decrypt(secret, secretBinding(id));
  }

  private encrypt(id: string, secret: string): string {
    return this.cipher.encrypt(secret, secretBinding(id));
  }
}
