import { Column, Entity, Index, UpdateDateColumn } from 'typeorm';
import { OwnedThing } from '../auth/owned.repository.js';

/** Per user. */
export const MAX_ENDPOINTS = 10;

@Entity('webhook_endpoints')
@Index('webhook_endpoints_user_id_idx', ['userId'])
export class WebhookEndpoint extends OwnedThing {
  @Column('text')
  url: string;

  @Column('text', { nullable: true })
  description: string | null;

  /** Types, or `*`. */
  @Column('text', { array: true })
  events: string[];

  /** Encrypted. */
  @Column('text')
  secret: string;

  /** Encrypted; it signs as well until `previousUntil`. */
  @Column('text', { name: 'previous_secret', nullable: true })
  previousSecret: string | null;

  @Column('timestamptz', { name: 'previous_until', nullable: true })
  previousUntil: Date | null;

  @Column('boolean', { default: true })
  enabled: boolean;

  /** Set when the service has disabled the endpoint itself. */
  @Column('text', { name: 'disabled_reason', nullable: true })
  disabledReason: string | null;

  /** The attempt since which nothing has arrived. */
  @Column('timestamptz', { name: 'failing_since', nullable: true })
  failingSince: Date | null;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
