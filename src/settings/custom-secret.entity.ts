import {
  Column,
  CreateDateColumn,
  Entity,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import { User } from '../auth/user.entity.js';

/** A named secret that a user's agents get. */
@Entity('custom_secrets')
export class CustomSecret {
  @PrimaryColumn('uuid', { name: 'user_id', primaryKeyConstraintName: 'custom_secrets_pkey' })
  userId: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'custom_secrets_pkey' })
  name: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'custom_secrets_user_id_fkey' })
  user?: User;

  /** Encrypted. */
  @Column('text')
  value: string;

  @Column('text', { nullable: true })
  description: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
