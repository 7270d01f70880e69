import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { OwnedByUser, User } from '../../auth/user.repository.js';
import type { SignatureScheme } from './event-signature.js';

/** Through which a host sends its events: there is one for each source of an organization. */
@Entity('automation_webhooks')
@Index('automation_webhooks_source_key', ['orgId', 'source'], { unique: true })
@Index('automation_webhooks_user_id_idx', ['userId'])
export class AutomationWebhook {
  @PrimaryColumn('uuid')
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @OwnedByUser()
  user?: User;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('text')
  name: string;

  @Column('text')
  source: string;

  /** JMESPath. The following four count for sources of the user's own only. */
  @Column('text', { name: 'event_key_expr' })
  eventKeyExpr: string;

  @Column('text', { name: 'signature_header' })
  signatureHeader: string;

  @Column('text', { name: 'signature_scheme' })
  signatureScheme: SignatureScheme;

  @Column('text', { name: 'event_id_header', nullable: true })
  eventIdHeader: string | null;

  @Column('boolean', { default: true })
  enabled: boolean;

  /** Encrypted. */
  @Column('text')
  secret: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
