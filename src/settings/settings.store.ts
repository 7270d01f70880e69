import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { lockUser } from '../auth/lock-user.js';
import { userIsGone } from '../auth/user-is-gone.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { DomainError } from '../common/errors/domain-error.js';
import { NamedStatement } from '../database/named-statement.js';
import type { McpConfigColumns } from '../mcp-config/mcp-config.store.js';
import { settingsBinding } from './settings-binding.js';
import type { SettingsChanges } from './settings-changes.js';
import { isKeyColumn, type SettingsColumn } from './settings-columns.js';
import { LOAD_SETTINGS, type SettingsRow } from './settings-row.js';
import { settingsAndMcpUpsert, settingsUpsert } from './settings-upsert.js';

/** Clients send few different sets of members; beyond this many, statements stay unnamed (each name costs memory). */
const MOST_NAMED = 32;

/**
 * Settings rows, merged by PostgreSQL itself: one statement touches the given columns only, so concurrent requests
 * never lose each other's members.
 */
@Injectable()
export class SettingsStore {
  private readonly load = new NamedStatement<SettingsRow>('settings_load', LOAD_SETTINGS);
  private readonly upserts = new Map<string, NamedStatement<never>>();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {}

  /** What is stored for the user, or null when nothing is: no settings, no tool servers, no provider tokens. */
  async find(userId: string): Promise<SettingsRow | null> {
    const [row] = await this.load.run(this.dataSource, [userId]);
    return row ?? null;
  }

  /**
   * Merges the changes into the user's settings, which exist from then on, and replaces the tool servers if some are
   * given: one statement, all of it or nothing.
   *
   * @throws DomainError unauthorized when the user is gone by now
   */
  async merge(userId: string, changes: SettingsChanges, mcpConfig?: McpConfigColumns): Promise<void> {
    const columns = [...changes.keys()];
    const text = mcpConfig ? settingsAndMcpUpsert(columns) : settingsUpsert(columns);
    const own = this.values(userId, changes);
    const values = mcpConfig ? [userId, mcpConfig.config, mcpConfig.secrets, ...own] : [userId, ...own];
    try {
      const named = this.upsertNamed(text);
      await (named ? named.run(this.dataSource, values) : this.dataSource.query(text, values));
    } catch (error) {
      throw userIsGone(error) ? new DomainError('unauthorized', 'unauthorized', 'Unauthorized') : error;
    }
  }

  /**
   * A transaction around more than the settings; those of one user take turns.
   *
   * @throws DomainError unauthorized when the user is gone by now
   */
  async transaction(userId: string, work: (manager: EntityManager) => Promise<void>): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await lockUser(manager, userId);
      await work(manager);
    });
  }

  /** {@link merge} as a part of {@link transaction}. */
  async mergeWithin(manager: EntityManager, userId: string, changes: SettingsChanges): Promise<void> {
    await manager.query(settingsUpsert([...changes.keys()]), [userId, ...this.values(userId, changes)]);
  }

  private values(userId: string, changes: SettingsChanges): unknown[] {
    return [...changes].map(([column, value]) => this.stored(userId, column, value));
  }

  private stored(
    userId: string,
    column: SettingsColumn,
    value: string | number | boolean | null,
  ): string | number | boolean | null {
    return isKeyColumn(column) && typeof value === 'string'
      ? this.cipher.encrypt(value, settingsBinding(column, userId))
      : value;
  }

  private upsertNamed(text: string): NamedStatement<never> | undefined {
    const known = this.upserts.get(text);
    if (known || this.upserts.size >= MOST_NAMED) {
      return known;
    }
    const statement = new NamedStatement<never>(`settings_upsert_${this.upserts.size + 1}`, text);
    this.upserts.set(text, statement);
    return statement;
  }
}
