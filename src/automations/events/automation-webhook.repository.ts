import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, Index, UpdateDateColumn } from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { PausedWithKey } from '../../auth/made-with-key.js';
import { OwnedRepository, type Owner, RowOfOwner } from '../../auth/owned.repository.js';
import { webhooksOf } from '@slipway/git-providers/git-servers.js';
import { columnById, SecretCipher } from '@slipway/common/secret-cipher.js';
import { type SignatureScheme, webhookSecretFor } from '@slipway/common/webhook-signature.js';
import { DomainError, found } from '../../common/errors/domain-error.js';

const MAX_WEBHOOKS = 20;

export const SOURCE_TAKEN =
  'This source has a webhook; there is one for each. Find it with GET /api/automation/v1/webhooks, then change it, delete it, or give it a new secret.';

export const NO_REPOSITORIES = 'Events of a source of your own name no repository.';

/** Through which a host sends its events: there is one for each source of an organization. */
@Entity('automation_webhooks')
@PausedWithKey('automation_webhook.update', { enabled: false })
@Index('automation_webhooks_source_key', ['orgId', 'source'], { unique: true })
@Index('automation_webhooks_user_id_idx', ['userId'])
export class AutomationWebhook extends RowOfOwner {
  @Column('text') name: string;
  @Column('text') source: string;
  /** JMESPath. Named as on the wire, like the following four, which count for sources of the user's own only. */
  @Column('text') event_key_expr: string;
  @Column('text') signature_header: string;
  @Column('text') signature_scheme: SignatureScheme;
  @Column('text', { nullable: true }) event_id_header: string | null;
  /** JMESPath; null: no sender counts as a writer. */
  @Column('text', { nullable: true }) writers_expr: string | null;
  @Column('boolean', { default: true }) enabled: boolean;
  /** Encrypted. */
  @Column('text') secret: string;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

export type WebhookValues = Omit<AutomationWebhook, keyof RowOfOwner | 'updatedAt' | 'enabled'>;

const SECRET = columnById('automation_webhooks', 'secret');

export const AUTOMATION_WEBHOOK_ENCRYPTED_COLUMNS = [SECRET];

/** Encrypts the secrets that go in and decrypts those that come out. */
@Injectable()
export class AutomationWebhookRepository extends OwnedRepository<AutomationWebhook> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
    audit: AuditRepository,
  ) {
    const rules = { kind: 'automation_webhook', noun: 'webhook', most: MAX_WEBHOOKS } as const;
    super(AutomationWebhook, dataSource, audit, rules);
  }

  /** @throws DomainError conflict for a source that has a webhook, or too many of them */
  async add(owner: Owner, values: WebhookValues): Promise<AutomationWebhook> {
    const id = randomUUID();
    const encrypted = { ...values, secret: this.cipher.encrypt(values.secret, SECRET.binding({ id })) };
    const { row } = await this.addOf(owner, id, encrypted, async (manager) => {
      if (await manager.existsBy(AutomationWebhook, { orgId: owner.orgId, source: values.source })) {
        throw new DomainError('conflict', SOURCE_TAKEN);
      }
      return null;
    });
    return row;
  }

  /** Throws as `getOf`. */
  async setSecret(owner: Owner, id: string, secret: string): Promise<AutomationWebhook> {
    const change = { secret: this.cipher.encrypt(secret, SECRET.binding({ id })) };
    return this.changeOf(owner, id, change, () => change, 'automation_webhook.rotate_secret');
  }

  /** Shows its user what signs events of one repository. Throws as `getOf`. @throws DomainError conflict for an own source */
  async showSecretOf(
    owner: Owner,
    id: string,
    repository: string,
  ): Promise<{ webhook: AutomationWebhook; secret: string }> {
    return this.manager.transaction(async (manager) => {
      const webhook = found(await this.lock(manager, { ...owner, id }), 'webhook');
      if (webhooksOf(webhook.source) === null) {
        throw new DomainError('conflict', NO_REPOSITORIES);
      }
      const action = 'automation_webhook.repository_secret';
      await this.audit.append(manager, { action, resourceId: id, ownerId: owner.userId });
      return { webhook, secret: this.secretOf(webhook, repository) };
    });
  }

  /**
   * The secret in clear: with a repository the one that signs its events alone.
   * @throws SecretDecryptionError when the configured keys do not fit
   */
  secretOf({ id, secret }: AutomationWebhook, repository: string | null = null): string {
    const whole = this.cipher.decrypt(secret, SECRET.binding({ id }));
    return repository === null ? whole : webhookSecretFor(`repository:${repository.toLowerCase()}`, whole);
  }
}
