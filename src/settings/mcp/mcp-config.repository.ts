import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import {
  Column,
  DataSource,
  Entity,
  type EntityManager,
  PrimaryColumn,
  Repository,
  UpdateDateColumn,
} from 'typeorm';
import { type AuditDetails, AuditRepository } from '../../audit/audit.repository.js';
import { OwnedByUser, User } from '../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '../../common/crypto/secret-cipher.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { ClearMcpConfig, StoredMcpConfig } from './mcp-config.types.js';
import {
  detailsOf,
  maskedConfig,
  type McpDetails,
  type McpSecrets,
  secretsOf,
  unmaskedConfig,
  withDetails,
} from './mcp-secrets.js';
import { namedServers } from './named-servers.js';

/** A user's tool servers: what may be shown in clear, and the secrets apart and encrypted. */
@Entity('mcp_configs')
export class McpConfig {
  @PrimaryColumn('uuid', { name: 'user_id' })
  userId: string;

  @OwnedByUser()
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

/** What a user's encrypted MCP secrets are bound to: copied to another user's row they do not decrypt. */
function mcpConfigBinding(userId: string): string {
  return `mcp_configs.secrets:${userId}`;
}

function detailsBinding(userId: string): string {
  return `mcp_configs.details:${userId}`;
}

/** The encrypted columns of this table. */
export const MCP_CONFIG_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'mcp_configs',
    column: 'secrets',
    keyColumns: ['user_id'],
    binding: ({ user_id = '' }) => mcpConfigBinding(user_id),
  },
  {
    table: 'mcp_configs',
    column: 'details',
    keyColumns: ['user_id'],
    binding: ({ user_id = '' }) => detailsBinding(user_id),
  },
];

type McpConfigColumns = Pick<McpConfig, 'config' | 'secrets' | 'details'>;

const READ_LOCKED = new NamedStatement<McpConfigColumns>(
  'mcp_configs_lock',
  'SELECT config, secrets, details FROM mcp_configs WHERE user_id = $1 FOR NO KEY UPDATE',
);

/** A user's tool servers from one state to the next; null: none, not even an empty list. */
interface McpConfigChange {
  /** What {@link McpConfigRepository.readLocked} found in this transaction. */
  before: ClearMcpConfig | null;
  config: ClearMcpConfig | null;
  /** What the audit entry names, if any server differs. */
  audited: AuditDetails;
}

/** The `mcp_configs` table: encrypts what goes in and decrypts what comes out. */
@Injectable()
export class McpConfigRepository extends Repository<McpConfig> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(McpConfig, dataSource.manager);
  }

  /**
   * The user's configuration with its secrets in clear; null when there is none.
   *
   * @throws SecretDecryptionError when it is not readable with the configured keys
   */
  async read(userId: string): Promise<ClearMcpConfig | null> {
    return this.inClear(userId, await this.findOneBy({ userId }));
  }

  /**
   * What {@link read} finds, for a transaction that has locked the user and changes it.
   *
   * @throws SecretDecryptionError as {@link read} does
   */
  async readLocked(manager: EntityManager, userId: string): Promise<ClearMcpConfig | null> {
    const [row = null] = await READ_LOCKED.within(manager, [userId]);
    return this.inClear(userId, row);
  }

  /** Replaces the user's configuration in the caller's transaction; null, which a patch may result in, removes it. */
  async replace(
    manager: EntityManager,
    userId: string,
    { before, config, audited }: McpConfigChange,
  ): Promise<void> {
    if (!isDeepStrictEqual(namedServers(config), namedServers(before))) {
      await this.append(manager, userId, audited);
    }
    if (config === null) {
      await manager.delete(McpConfig, { userId });
    } else if (before === null) {
      await manager.insert(McpConfig, { userId, ...this.columns(userId, config) });
    } else if (!isDeepStrictEqual(config, before)) {
      await manager.update(McpConfig, { userId }, this.columns(userId, config));
    }
  }

  /** Removes the user's configuration in the caller's transaction, even if it cannot be decrypted. */
  async removeOf(manager: EntityManager, userId: string): Promise<void> {
    const { affected } = await manager.delete(McpConfig, { userId });
    if (affected === 1) {
      await this.append(manager, userId);
    }
  }

  private async append(manager: EntityManager, userId: string, details: AuditDetails = {}): Promise<void> {
    await this.audit.append(manager, {
      action: 'mcp_servers.update',
      resourceId: null,
      ownerId: userId,
      details,
    });
  }

  private inClear(userId: string, row: McpConfigColumns | null): ClearMcpConfig | null {
    if (row === null) {
      return null;
    }
    const secrets: McpSecrets | null =
      row.secrets === null ? null : JSON.parse(this.cipher.decrypt(row.secrets, mcpConfigBinding(userId)));
    const config = unmaskedConfig(row.config, secrets);
    if (row.details === null) {
      return config;
    }
    const details: McpDetails = JSON.parse(this.cipher.decrypt(row.details, detailsBinding(userId)));
    return withDetails(config, details);
  }

  private columns(userId: string, config: ClearMcpConfig): McpConfigColumns {
    const [secrets, details] = [secretsOf(config), detailsOf(config)];
    return {
      config: maskedConfig(config),
      secrets: secrets && this.cipher.encrypt(JSON.stringify(secrets), mcpConfigBinding(userId)),
      details: details && this.cipher.encrypt(JSON.stringify(details), detailsBinding(userId)),
    };
  }
}
