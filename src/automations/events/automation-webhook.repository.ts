import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { lockUser } from '../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '../../common/crypto/secret-cipher.js';
import type { Owner } from '../current-owner.js';
import type { ListPlace } from '../definitions/automation.repository.js';
import { AutomationWebhook } from './automation-webhook.entity.js';

/** Per user. */
export const MAX_AUTOMATION_WEBHOOKS = 20;

function secretBinding(id: string): string {
  return `automation_webhooks.secret:${id}`;
}

export const AUTOMATION_WEBHOOK_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'automation_webhooks',
    column: 'secret',
    keyColumns: ['id'],
    binding: ({ id = '' }) => secretBinding(id),
  },
];

export type WebhookValues = Pick<
  AutomationWebhook,
  'name' | 'source' | 'eventKeyExpr' | 'signatureHeader' | 'signatureScheme' | 'eventIdHeader' | 'secret'
>;

export type WebhookChange = Partial<Omit<WebhookValues, 'source'> & Pick<AutomationWebhook, 'enabled'>>;

/** Encrypts the secrets that go in and decrypts those that come out. */
@Injectable()
export class AutomationWebhookRepository extends Repository<AutomationWebhook> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(AutomationWebhook, dataSource.manager);
  }

  async page({ userId, orgId }: Owner, { limit, offset }: ListPlace): Promise<[AutomationWebhook[], number]> {
    const order = { createdAt: 'DESC', id: 'DESC' } as const;
    return this.findAndCount({ where: { userId, orgId }, order, take: limit, skip: offset });
  }

  async findOf({ userId, orgId }: Owner, id: string): Promise<AutomationWebhook | null> {
    return this.findOneBy({ userId, orgId, id });
  }

  async findSource(orgId: string, source: string): Promise<AutomationWebhook | null> {
    return this.findOneBy({ orgId, source });
  }

  /** Adds a webhook; tells when its source has one, or the user has {@link MAX_AUTOMATION_WEBHOOKS}. */
  async add(
    owner: Owner,
    { secret, ...values }: WebhookValues,
  ): Promise<AutomationWebhook | 'taken' | 'many'> {
    const id = randomUUID();
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, owner.userId);
      if (await manager.existsBy(AutomationWebhook, { orgId: owner.orgId, source: values.source })) {
        return 'taken';
      }
      if ((await manager.countBy(AutomationWebhook, { userId: owner.userId })) >= MAX_AUTOMATION_WEBHOOKS) {
        return 'many';
      }
      await manager.insert(AutomationWebhook, { id, ...owner, ...values, secret: this.encrypt(id, secret) });
      const entry = { action: 'automation_webhook.create', resourceId: id, ownerId: owner.userId } as const;
      await this.audit.append(manager, entry);
      return manager.findOneByOrFail(AutomationWebhook, { id });
    });
  }

  /** Null for an unknown one. */
  async change(owner: Owner, id: string, change: WebhookChange): Promise<AutomationWebhook | null> {
    const { secret, ...values } = change;
    const members = Object.entries(change).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    return this.manager.transaction(async (manager) => {
      const { affected } = await manager.update(
        AutomationWebhook,
        { ...owner, id },
        {
          ...values,
          ...(secret !== undefined && { secret: this.encrypt(id, secret) }),
          updatedAt: () => 'now()',
        },
      );
      if (affected === 1) {
        await this.audit.append(manager, {
          action: secret === undefined ? 'automation_webhook.update' : 'automation_webhook.rotate_secret',
          resourceId: id,
          ownerId: owner.userId,
          details: { members },
        });
      }
      return manager.findOneBy(AutomationWebhook, { ...owner, id });
    });
  }

  /** False for an unknown one. */
  async removeOf(owner: Owner, id: string): Promise<boolean> {
    return this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(AutomationWebhook, { ...owner, id });
      if (affected === 1) {
        const entry = { action: 'automation_webhook.delete', resourceId: id, ownerId: owner.userId } as const;
        await this.audit.append(manager, entry);
      }
      return affected === 1;
    });
  }

  /** The secret in clear. @throws SecretDecryptionError when the configured keys do not fit */
  secretOf({ id, secret }: AutomationWebhook): string {
    return this.cipher.decrypt(secret, secretBinding(id));
  }

  private encrypt(id: string, secret: string): string {
    return this.cipher.encrypt(secret, secretBinding(id));
  }
}
