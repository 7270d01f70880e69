import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { User } from '../../auth/user.entity.js';

/** What a request with an `Idempotency-Key` created, so that its repetition gets the same response. */
@Entity('idempotency_keys')
@Index('idempotency_keys_created_at_idx', ['createdAt'])
export class IdempotencyKey {
  @PrimaryColumn('uuid', { name: 'user_id', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'idempotency_keys_user_id_fkey' })
  user?: User;

  /** The route: two routes may be called with the same key. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'idempotency_keys_pkey' })
  scope: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key: string;

  /** SHA-256 of the request. */
  @Column('bytea', { name: 'request_hash' })
  requestHash: Buffer;

  @Column('text', { name: 'resource_id' })
  resourceId: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
