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
import { AuditRepository } from '../audit/audit.repository.js';
import { OwnedByUser, User } from '../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '../common/crypto/secret-cipher.js';
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

/** A configuration with only the three lists, in the form of its two columns. */
export interface McpConfigColumns {
  /** JSON text, secrets masked. */
  config: string;
  /** Encrypted; null when there are none. */
  secrets: string | null;
  /** Names of the servers. */
  servers: readonly string[];
}

/**
 * The statement that replaces a user's tool servers, for use in statements of other features too. It returns no row,
 * and changes nothing, when something is stored beyond the three lists, because that has to be read first.
 *
 * @param owner SQL expression of the user's id; `config` and `secrets` likewise
 */
export function mcpConfigUpsert(owner: string, config: string, secrets: string): string {
  return `
  INSERT INTO mcp_configs (user_id, config, secrets)
  VALUES (${owner}, ${config}, ${secrets})
  ON CONFLICT (user_id) DO UPDATE
  SET config = excluded.config, secrets = excluded.secrets, updated_at = now()
  WHERE mcp_configs.details IS NULL
  RETURNING user_id`;
}

/** The stored row, locked until the end of the transaction; for statements of other features that replace it. */
export function mcpConfigLock(owner: string): string {
  return `SELECT config, secrets FROM mcp_configs WHERE user_id = ${owner} FOR NO KEY UPDATE`;
}

const REPLACE = `
  INSERT INTO mcp_configs (user_id, config, secrets, details)
  VALUES ($1, $2, $3, $4)
  ON CONFLICT (user_id) DO UPDATE
  SET config = excluded.config, secrets = excluded.secrets, details = excluded.details, updated_at = now()`;

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
  async read(userId: string, manager: EntityManager = this.manager): Promise<ClearMcpConfig | null> {
    const row = await manager.findOneBy(McpConfig, { userId });
    if (!row) {
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

  /**
   * Replaces the user's configuration in the caller's transaction; null, which a patch may result in, removes it.
   *
   * @param before what {@link read} found in this transaction
   */
  async replace(
    manager: EntityManager,
    userId: string,
    config: ClearMcpConfig | null,
    before: ClearMcpConfig | null,
  ): Promise<void> {
    if (!isDeepStrictEqual(namedServers(config), namedServers(before))) {
      await this.audit.append(manager, {
        action: 'mcp_servers.update',
        resourceId: null,
        ownerId: userId,
        details: changedServers(config, before),
      });
    }
    if (config === null) {
      await manager.delete(McpConfig, { userId });
      return;
    }
    const columns = this.toColumns(userId, config);
    const details = detailsOf(config);
    await manager.query(REPLACE, [
      userId,
      columns.config,
      columns.secrets,
      details && this.cipher.encrypt(JSON.stringify(details), detailsBinding(userId)),
    ]);
  }

  /** Removes the user's configuration in the caller's transaction, even if it cannot be decrypted. */
  async removeOf(manager: EntityManager, userId: string): Promise<void> {
    const { affected } = await manager.delete(McpConfig, { userId });
    if (affected === 1) {
      const entry = { action: 'mcp_servers.update', resourceId: null, ownerId: userId } as const;
      await this.audit.append(manager, entry);
    }
  }

  toColumns(userId: string, config: ClearMcpConfig): McpConfigColumns {
    const secrets = secretsOf(config);
    return {
      config: JSON.stringify(maskedConfig(config)),
      secrets: secrets && this.cipher.encrypt(JSON.stringify(secrets), mcpConfigBinding(userId)),
      servers: [...namedServers(config).keys()],
    };
  }
}

/** Names of the servers that are new, different and gone. */
function changedServers(
  config: ClearMcpConfig | null,
  before: ClearMcpConfig | null,
): Record<'added' | 'changed' | 'removed', string[]> {
  const [now, old] = [namedServers(config), namedServers(before)];
  const names = [...now.keys()];
  return {
    added: names.filter((name) => !old.has(name)),
    changed: names.filter((name) => old.has(name) && !isDeepStrictEqual(now.get(name), old.get(name))),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  };
}
