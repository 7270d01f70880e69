import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, Unique } from 'typeorm';

/** A person or service that owns keys, settings, tokens and conversations. */
@Entity('users')
@Unique('users_email_key', ['email'])
@Index('users_administrators_idx', ['id'], { where: 'is_admin' })
export class User {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'users_pkey' })
  id: string;

  /** Lower case. */
  @Column('text')
  email: string;

  @Column('text', { nullable: true })
  name: string | null;

  @Column('boolean', { name: 'is_admin', default: false })
  isAdmin: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
