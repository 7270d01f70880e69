import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, type EntityManager, In, Repository, UpdateDateColumn } from 'typeorm';
import { type AuditDetails, AuditRepository } from '../../audit/audit.repository.js';
import { UserKeyedRow } from '../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '@slipway/common/secret-cipher.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { maskedServers } from '@slipway/tool-servers/listed-servers.js';
import type { StoredMcpConfigDto } from '@slipway/tool-servers/mcp-config.dto.js';
import { namedServers } from '@slipway/tool-servers/named-servers.js';
import { parsedServers, serialized } from '@slipway/tool-servers/stored-servers.js';
import type { ToolServer } from '@slipway/tool-servers/tool-servers.js';

/** A user's tool servers: what may be shown in clear, and the secrets apart and encrypted. */
@Entity('mcp_configs')
export class McpConfig extends UserKeyedRow {
  /** The configuration with every secret replaced by the mask. */
  @Column('jsonb') config: StoredMcpConfigDto;

  /** Encrypted JSON of the configuration with its secrets, and what newer clients gave beyond that. */
  @Column('text') secrets: string;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** What a user's encrypted MCP secrets are bound to: copied to another user's row they do not decrypt. */
function mcpConfigBinding(userId: string): string {
  return `mcp_configs.secrets:${userId}`;
}

export const MCP_CONFIG_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'mcp_configs',
    column: 'secrets',
    keyColumns: ['user_id'],
    binding: ({ user_id = '' }) => mcpConfigBinding(user_id),
  },
];

const READ_LOCKED = new NamedStatement<Pick<McpConfig, 'secrets'>>(
  'mcp_configs_lock',
  'SELECT secrets FROM mcp_configs WHERE user_id = $1 FOR NO KEY UPDATE',
);

/** A user's tool servers from one state to the next; null: none, not even an empty list. */
interface McpConfigChange {
  /** What {@link McpConfigRepository.readLocked} found in this transaction. */
  before: ToolServer[] | null;
  servers: ToolServer[] | null;
  /** What the audit entry names, if any server differs. */
  audited: AuditDetails;
}

/** The `mcp_configs` table: encrypts what goes in and decrypts what comes out. */
@Injectable()
export class McpConfigRepository extends Repository<McpConfig> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(McpConfig, dataSource.manager);
  }

  /**
   * The user's tool servers with their secrets in clear; null when there is none.
   * @throws SecretDecryptionError when it is not readable with the configured keys
   */
  async read(userId: string): Promise<ToolServer[] | null> {
    return this.inClear(userId, await this.findOneBy({ userId }));
  }

  /** Returns what {@link read} finds, by owner. */
  async readEach(ownerIds: readonly string[]): Promise<(ownerId: string) => ToolServer[] | null> {
    const rows = await this.findBy({ userId: In(ownerIds) });
    return (ownerId) => this.inClear(ownerId, rows.find(({ userId }) => userId === ownerId) ?? null);
  }

  /**
   * What {@link read} finds, for a transaction that has locked the user and changes it.
   * @throws SecretDecryptionError as {@link read} does
   */
  async readLocked(manager: EntityManager, userId: string): Promise<ToolServer[] | null> {
    const [row = null] = await READ_LOCKED.within(manager, [userId]);
    return this.inClear(userId, row);
  }

  /** Replaces the user's tool servers in the caller's transaction; null, which a patch may result in, removes it. */
  async replace(
    manager: EntityManager,
    userId: string,
    { before, servers, audited }: McpConfigChange,
  ): Promise<void> {
    if (!isDeepStrictEqual(namedServers(servers), namedServers(before))) {
      await this.append(manager, userId, audited);
    }
    if (servers === null) {
      await manager.delete(McpConfig, { userId });
    } else if (!isDeepStrictEqual(servers, before)) {
      const secrets = this.cipher.encrypt(serialized(servers), mcpConfigBinding(userId));
      const row = { userId, config: maskedServers(servers), secrets, updatedAt: () => 'now()' };
      await manager.upsert(McpConfig, row, ['userId']);
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

  private inClear(userId: string, row: Pick<McpConfig, 'secrets'> | null): ToolServer[] | null {
    return row && parsedServers(this.cipher.decrypt(row.secrets, mcpConfigBinding(userId)));
  }
}
