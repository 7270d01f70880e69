import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { User } from '../auth/user.entity.js';
import type { StoredMcpConfig } from './mcp-config.types.js';

/** A user's tool servers: what may be shown in clear, and the secrets apart and encrypted. */
@Entity('mcp_configs')
export class McpConfig {
  @PrimaryColumn('uuid', { name: 'user_id', primaryKeyConstraintName: 'mcp_configs_pkey' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'mcp_configs_user_id_fkey' })
  user?: User;

  /** The configuration with every secret replaced by the mask. */
  @Column('jsonb')
  config: StoredMcpConfig;

  /** Encrypted JSON of the secrets behind the masks; null when there are none. */
  @Column('text', { nullable: true })
  secrets: string | null;

  /** Encrypted JSON of what newer clients gave beyond that, see `McpDetails`; null when there is nothing. */
  @Column('text', { nullable: true })
  details: string | null;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
