import { Injectable } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { lockUser, userIsGone } from '../auth/lock-user.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { DomainError } from '../common/errors/domain-error.js';
import { NamedStatement } from '../database/named-statement.js';
import { type McpConfigColumns, mcpConfigUpsert } from '../mcp-config/mcp-config.repository.js';
import type { StoredMcpConfig } from '../mcp-config/mcp-config.types.js';
import {
  isKeyColumn,
  SETTINGS_COLUMNS,
  settingsBinding,
  type SettingsColumn,
  type SettingsKeyColumn,
} from './settings-columns.js';
import { SETTINGS_DEFAULTS, type SettingsDto } from './settings.dto.js';
import { Settings } from './settings.entity.js';
import type { StoredSettingsDto } from './stored-settings.dto.js';

/** The keys among a user's settings, in clear: for agents and their sandboxes, never for a log or another answer. */
export type SettingsKeys = Record<SettingsKeyColumn, string | null>;

/** Hands the keys of settings to the code that works with them. */
@Injectable()
export class SettingsKeysReader {
  constructor(
    @InjectRepository(Settings) private readonly settings: Repository<Settings>,
    private readonly cipher: SecretCipher,
  ) {}

  /**
   * Null for each key that is not set.
   *
   * @throws SecretDecryptionError when a stored key is not readable with the configured keys
   */
  async forUser(userId: string): Promise<SettingsKeys> {
    const row = await this.settings.findOne({
      select: { userId: true, llm_api_key: true, search_api_key: true, sandbox_api_key: true },
      where: { userId },
    });
    const inClear = (column: SettingsKeyColumn): string | null => {
      const stored = row?.[column] ?? null;
      return stored === null ? null : this.cipher.decrypt(stored, settingsBinding(column, userId));
    };
    return {
      llm_api_key: inClear('llm_api_key'),
      search_api_key: inClear('search_api_key'),
      sandbox_api_key: inClear('sandbox_api_key'),
    };
  }
}

type KeyMembers = 'llm_api_key' | 'search_api_key' | 'sandbox_api_key';
type OwnMembers = Omit<Settings, KeyMembers | 'userId' | 'user' | 'createdAt' | 'updatedAt'>;

/** One row of {@link LOAD_SETTINGS}; settings are null throughout for a user without any. */
export type SettingsRow = { [Member in keyof OwnMembers]: OwnMembers[Member] | null } & {
  llm_api_key_set: boolean;
  search_api_key_set: boolean;
  sandbox_api_key_set: boolean;
  mcp_config: StoredMcpConfig | null;
  /** Provider -> host; null without any token. */
  provider_tokens_set: Record<string, string | null> | null;
};

const shownColumns = SETTINGS_COLUMNS.map((column) =>
  isKeyColumn(column) ? `s.${column} IS NOT NULL AS ${column}_set` : `s.${column}`,
);

/** Everything `GET /api/settings` shows, in one statement. No row: nothing was stored for the user ($1). */
export const LOAD_SETTINGS = `
  SELECT ${shownColumns.join(', ')}, m.config AS mcp_config, t.hosts AS provider_tokens_set
  FROM (VALUES ($1::uuid)) AS owner (id)
  LEFT JOIN settings s ON s.user_id = owner.id
  LEFT JOIN mcp_configs m ON m.user_id = owner.id
  LEFT JOIN LATERAL (
    SELECT json_object_agg(provider, host ORDER BY provider) AS hosts FROM provider_tokens WHERE user_id = owner.id
  ) t ON true
  WHERE s.user_id IS NOT NULL OR m.user_id IS NOT NULL OR t.hosts IS NOT NULL`;

/** What a user has who stored nothing. */
export function emptySettingsRow(): SettingsRow {
  return {
    language: null,
    agent: null,
    max_iterations: null,
    security_analyzer: null,
    confirmation_mode: null,
    llm_model: null,
    llm_base_url: null,
    remote_runtime_resource_factor: null,
    enable_default_condenser: null,
    enable_sound_notifications: null,
    enable_proactive_conversation_starters: null,
    enable_solvability_analysis: null,
    user_consents_to_analytics: null,
    sandbox_base_container_image: null,
    sandbox_runtime_container_image: null,
    max_budget_per_task: null,
    email: null,
    email_verified: null,
    git_user_name: null,
    git_user_email: null,
    llm_api_key_set: false,
    search_api_key_set: false,
    sandbox_api_key_set: false,
    mcp_config: null,
    provider_tokens_set: null,
  };
}

/** The answer to a row, members in the order of the API document. */
export function toStoredSettingsDto(row: SettingsRow): StoredSettingsDto {
  return {
    language: row.language,
    agent: row.agent,
    max_iterations: row.max_iterations,
    security_analyzer: row.security_analyzer,
    confirmation_mode: row.confirmation_mode,
    llm_model: row.llm_model,
    llm_api_key: null,
    llm_base_url: row.llm_base_url,
    remote_runtime_resource_factor: row.remote_runtime_resource_factor,
    secrets_store: { provider_tokens: {}, custom_secrets: {} },
    enable_default_condenser: row.enable_default_condenser ?? SETTINGS_DEFAULTS.enable_default_condenser,
    enable_sound_notifications:
      row.enable_sound_notifications ?? SETTINGS_DEFAULTS.enable_sound_notifications,
    enable_proactive_conversation_starters:
      row.enable_proactive_conversation_starters ?? SETTINGS_DEFAULTS.enable_proactive_conversation_starters,
    enable_solvability_analysis:
      row.enable_solvability_analysis ?? SETTINGS_DEFAULTS.enable_solvability_analysis,
    user_consents_to_analytics: row.user_consents_to_analytics,
    sandbox_base_container_image: row.sandbox_base_container_image,
    sandbox_runtime_container_image: row.sandbox_runtime_container_image,
    mcp_config: row.mcp_config,
    search_api_key: null,
    sandbox_api_key: null,
    max_budget_per_task: row.max_budget_per_task,
    email: row.email,
    email_verified: row.email_verified,
    git_user_name: row.git_user_name,
    git_user_email: row.git_user_email,
    llm_api_key_set: row.llm_api_key_set,
    search_api_key_set: row.search_api_key_set,
    sandbox_api_key_set: row.sandbox_api_key_set,
    provider_tokens_set: row.provider_tokens_set ?? {},
  };
}

/** Clients send few different sets of members; beyond this many, statements stay unnamed (each name costs memory). */
const MOST_NAMED = 32;

/**
 * Settings rows, merged by PostgreSQL itself: one statement touches the given columns only, so concurrent requests
 * never lose each other's members.
 */
@Injectable()
export class SettingsRepository {
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

/** New values by column, keys still in clear; a column that is not here keeps its value. */
type SettingsChanges = ReadonlyMap<SettingsColumn, string | number | boolean | null>;

/** Clients send null for these when they mean "unchanged" (their forms never get the keys to show). */
const NULL_KEEPS: readonly SettingsColumn[] = [
  'llm_model',
  'llm_base_url',
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
  'user_consents_to_analytics',
];

/** Since null keeps these, blank text clears them. */
const BLANK_CLEARS: readonly SettingsColumn[] = [
  'llm_model',
  'llm_base_url',
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
];

/** Which columns a request changes, and to what. */
export function settingsChanges(dto: SettingsDto): SettingsChanges {
  return new Map(
    SETTINGS_COLUMNS.flatMap((column): [SettingsColumn, string | number | boolean | null][] => {
      const value = dto[column];
      if (value === undefined || (value === null && NULL_KEEPS.includes(column))) {
        return [];
      }
      const clears = typeof value === 'string' && value.trim() === '' && BLANK_CLEARS.includes(column);
      return [[column, clears ? null : value]];
    }),
  );
}

/**
 * The statement that sets the columns ($2 and on) of a user's settings ($1) and leaves all others alone; columns that
 * a new row does not get have their defaults.
 */
export function settingsUpsert(columns: readonly SettingsColumn[]): string {
  return upsert(columns, ['$1', ...columns.map((_column, index) => `$${index + 2}`)]);
}

/**
 * {@link settingsUpsert} together with the user's tool servers ($2 shown, $3 secrets; the columns are $4 and on), as one
 * statement: all of it or nothing, in one round trip. Like every writer of several of a user's rows it locks the user's
 * own row first, see `lockUser`; for a user who is gone `user_id` would be null, which the tables refuse.
 */
function settingsAndMcpUpsert(columns: readonly SettingsColumn[]): string {
  const parameters = columns.map((_column, index) => `$${index + 4}`);
  return `
    WITH owner AS MATERIALIZED (SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE),
    mcp AS (${mcpConfigUpsert('(SELECT id FROM owner)', '$2', '$3')})
    ${upsert(columns, ['(SELECT id FROM owner)', ...parameters])}`;
}

function upsert(columns: readonly SettingsColumn[], values: readonly string[]): string {
  const updates = columns.map((column) => `${column} = excluded.${column}`);
  const onConflict =
    updates.length === 0 ? 'NOTHING' : `UPDATE SET ${updates.join(', ')}, updated_at = now()`;
  return `INSERT INTO settings (${['user_id', ...columns].join(', ')}) VALUES (${values.join(', ')}) ON CONFLICT (user_id) DO ${onConflict}`;
}
