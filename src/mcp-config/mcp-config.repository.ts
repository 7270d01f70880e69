import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { type EncryptedColumn, SecretCipher } from '../common/crypto/secret-cipher.js';
import { McpConfig } from './mcp-config.entity.js';
import type { ClearMcpConfig } from './mcp-config.types.js';
import {
  detailsOf,
  maskedConfig,
  type McpDetails,
  type McpSecrets,
  secretsOf,
  unmaskedConfig,
  withDetails,
} from './mcp-secrets.js';

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

/** A configuration of the three lists alone in the form of its two columns. */
export interface McpConfigColumns {
  /** JSON text, secrets masked. */
  config: string;
  /** Encrypted; null when there are none. */
  secrets: string | null;
}

/**
 * The statement that replaces a user's tool servers, for use in statements of other features too. It returns no row, and
 * changes nothing, when something is stored beyond the three lists: that has to be read first.
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

  /** Replaces the user's configuration in the caller's transaction; null removes it. */
  async replace(manager: EntityManager, userId: string, config: ClearMcpConfig | null): Promise<void> {
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

  toColumns(userId: string, config: ClearMcpConfig): McpConfigColumns {
    const secrets = secretsOf(config);
    return {
      config: JSON.stringify(maskedConfig(config)),
      secrets: secrets && this.cipher.encrypt(JSON.stringify(secrets), mcpConfigBinding(userId)),
    };
  }
}
