import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';
import { OwnedByUser, User } from '../../auth/user.repository.js';

/** What an event meant for an automation. */
export interface EventOutcome {
  automation_id: string;
  run_id: string | null;
  /** Why there is no run, or why it did not begin. */
  reason: string | null;
}

/** An event that a host has sent, kept for a day. */
@Entity('automation_events')
@Index('automation_events_delivery_key', ['orgId', 'source', 'deliveryId'], { unique: true })
@Index('automation_events_list_idx', ['orgId', 'createdAt', 'id'])
@Index('automation_events_created_at_idx', ['createdAt'])
@Index('automation_events_user_id_idx', ['userId'])
export class AutomationEvent {
  @PrimaryColumn('uuid')
  id: string;

  /** Of the webhook. */
  @Column('uuid', { name: 'user_id' })
  userId: string;

  @OwnedByUser()
  user?: User;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('text')
  source: string;

  /** The host's id; that of the row where it sends none. */
  @Column('text', { name: 'delivery_id' })
  deliveryId: string;

  @Column('text', { name: 'event_key' })
  eventKey: string;

  @Column('json')
  payload: unknown;

  @Column('jsonb', { default: () => "'[]'" })
  outcomes: EventOutcome[];

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
