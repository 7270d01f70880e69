import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { OwnedByUser, User } from '../auth/user.repository.js';

/** Endpoints of one user. */
export const MAX_ENDPOINTS = 10;

/** A webhook endpoint of a user. */
@Entity('webhook_endpoints')
@Index('webhook_endpoints_user_id_idx', ['userId'])
export class WebhookEndpoint {
  @PrimaryColumn('uuid')
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @OwnedByUser()
  user?: User;

  @Column('text')
  url: string;

  @Column('text', { nullable: true })
  description: string | null;

  /** Types of events, or `*`. */
  @Column('text', { array: true })
  events: string[];

  /** Encrypted. */
  @Column('text')
  secret: string;

  @Column('boolean', { default: true })
  enabled: boolean;

  /** Why the service has disabled it; null when it is enabled, or its user has disabled it. */
  @Column('text', { name: 'disabled_reason', nullable: true })
  disabledReason: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
