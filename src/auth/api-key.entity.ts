import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { User } from './user.entity.js';

/** Name of the key from `BOOTSTRAP_API_KEY`; no other key may have it. */
export const BOOTSTRAP_KEY_NAME = 'bootstrap';

/** An API key: only the SHA-256 of its secret is stored, never the key. */
@Entity('api_keys')
@Index('api_keys_user_id_idx', ['userId'])
export class ApiKey {
  /** Eight base62 characters; part of the key itself (`slw_<id>_<secret>`). */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'api_keys_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'api_keys_user_id_fkey' })
  user?: User;

  @Column('text')
  name: string;

  @Column('bytea', { name: 'secret_hash' })
  secretHash: Buffer;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  /** Written at most once a minute. */
  @Column('timestamptz', { name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt: Date | null;
}
