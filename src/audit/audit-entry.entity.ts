import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { ActorKind, AuditAction, AuditOutcome } from './audit-action.js';

/** Names beside an entry: never a value that somebody stored. */
export type AuditDetails = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/**
 * Who did what. Refers to nothing, so that it outlives what it is about; rows are only ever added, and removed when they
 * are old. The primary key begins with the time, which all lists are ordered by.
 */
@Entity('audit_entries')
@Index('audit_entries_actor_idx', ['actorUserId', 'at', 'id'])
@Index('audit_entries_owner_idx', ['ownerUserId', 'at', 'id'])
@Index('audit_entries_action_idx', ['action', 'at', 'id'])
@Index('audit_entries_resource_idx', ['resourceId', 'at', 'id'])
@Index('audit_entries_request_idx', ['requestId'])
export class AuditEntry {
  /** By the clock of the database. */
  @PrimaryColumn('timestamptz', {
    default: () => 'clock_timestamp()',
    primaryKeyConstraintName: 'audit_entries_pkey',
  })
  at: Date;

  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'audit_entries_pkey' })
  id: string;

  @Column('text')
  action: AuditAction;

  @Column('text')
  outcome: AuditOutcome;

  @Column('text', { name: 'actor_kind' })
  actorKind: ActorKind;

  /** The user, or the owner of the sandbox; null for the operator and the service. */
  @Column('uuid', { name: 'actor_user_id', nullable: true })
  actorUserId: string | null;

  /** The public part of the key, or the id of the sandbox whose key it was. */
  @Column('text', { name: 'actor_key_id', nullable: true })
  actorKeyId: string | null;

  /** Id or name, as it stands in the addresses of the API; what kind of thing it is, the action says. */
  @Column('text', { name: 'resource_id', nullable: true })
  resourceId: string | null;

  /** Whose it is; the user may have been removed since. */
  @Column('uuid', { name: 'owner_user_id', nullable: true })
  ownerUserId: string | null;

  @Column('text', { name: 'request_id', nullable: true })
  requestId: string | null;

  /** Where the connection came from. */
  @Column('text', { name: 'client_address', nullable: true })
  clientAddress: string | null;

  @Column('jsonb')
  details: AuditDetails;
}
