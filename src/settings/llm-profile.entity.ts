import {
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import { User } from '../auth/user.entity.js';

/** A model with its address, key and parameters, stored under a name. */
@Entity('llm_profiles')
@Index('llm_profiles_user_id_name_key', ['userId', 'name'], { unique: true })
export class LlmProfile {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'llm_profiles_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'llm_profiles_user_id_fkey' })
  user?: User;

  @Column('text')
  name: string;

  /** Encrypted JSON of all its members, keys included. */
  @Column('text')
  config: string;

  /** The settings were set to it last. Whether they still are, only a comparison tells. */
  @Column('boolean', { default: false })
  active: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
