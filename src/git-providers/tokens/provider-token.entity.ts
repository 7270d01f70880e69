import {
  Column,
  CreateDateColumn,
  Entity,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import { User } from '../../auth/user.entity.js';
import type { EncryptedColumn } from '../../common/crypto/secret-cipher.js';
import type { ProviderType } from '../git-provider.js';

/** What an encrypted token is bound to: a record copied to another user or provider does not decrypt. */
export function providerTokenBinding(userId: string, provider: string): string {
  return `provider_tokens.token:${userId}:${provider}`;
}

/** Where this feature keeps encrypted records. */
export const PROVIDER_TOKEN_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'provider_tokens',
    column: 'token',
    keyColumns: ['user_id', 'provider'],
    binding: ({ user_id = '', provider = '' }) => providerTokenBinding(user_id, provider),
  },
];

/** A user's credential for one git provider. */
@Entity('provider_tokens')
export class ProviderToken {
  @PrimaryColumn('uuid', { name: 'user_id', primaryKeyConstraintName: 'provider_tokens_pkey' })
  userId: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'provider_tokens_pkey' })
  provider: ProviderType;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'provider_tokens_user_id_fkey' })
  user?: User;

  /** Encrypted. */
  @Column('text')
  token: string;

  /** Canonical host, see `parseGitHost`; null = the provider's default address. */
  @Column('text', { nullable: true })
  host: string | null;

  /** The account id the client gave along with the token, as it gave it. */
  @Column('text', { name: 'account_id', nullable: true })
  accountId: string | null;

  /** False when the provider gave no verdict at the time of storing. */
  @Column('boolean', { default: true })
  verified: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
