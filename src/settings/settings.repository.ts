import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { isJsonObject } from '@slipway/common/json-merge.js';
import { AuditRepository, auditInsert, type NewAuditEntry } from '../audit/audit.repository.js';
import { lockUser, userIsGone } from '../auth/user.repository.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { DomainError } from '../common/errors/domain-error.js';
import { NamedStatement } from '../database/named-statement.js';
import {
  type McpConfigColumns,
  mcpConfigLock,
  mcpConfigUpsert,
} from '../mcp-config/mcp-config.repository.js';
import {
  isKeyColumn,
  SETTINGS_COLUMNS,
  SETTINGS_KEY_COLUMNS,
  settingsBinding,
  type SettingsChanges,
  type SettingsColumn,
  type SettingsKeyColumn,
  type SettingsKeys,
  type SettingsRow,
} from './settings-table.js';
import { NO_DETAILS, type SettingsDetails } from './nested-settings.js';
import { Settings } from './settings.entity.js';

/** Everything `GET /api/settings` shows, in one statement. No row: nothing is stored for the user ($1). */
export const LOAD_SETTINGS = loadSettings(SETTINGS_COLUMNS.map(selected));

/**
 * {@link LOAD_SETTINGS} as one JSON value: PostgreSQL describes the columns of a row with each answer, and the driver needs
 * longer to read two dozen descriptions than to parse this.
 */
const LOAD_AS_JSON = `SELECT row_to_json(shown) AS settings FROM (${LOAD_SETTINGS}) AS shown`;

/** {@link LOAD_SETTINGS}, with the encrypted columns beside what is shown of them. */
const LOAD_SETTINGS_AND_KEYS = loadSettings([
  ...SETTINGS_COLUMNS.map(selected),
  ...SETTINGS_KEY_COLUMNS.map((column) => `s.${column}`),
  's.details',
]);

function loadSettings(columns: readonly string[]): string {
  return `
  SELECT ${columns.join(', ')}, m.config AS mcp_config, t.hosts AS provider_tokens_set
  FROM (VALUES ($1::uuid)) AS owner (id)
  LEFT JOIN settings s ON s.user_id = owner.id
  LEFT JOIN mcp_configs m ON m.user_id = owner.id
  LEFT JOIN LATERAL (
    SELECT json_object_agg(provider, host ORDER BY provider) AS hosts FROM provider_tokens WHERE user_id = owner.id
  ) t ON true
  WHERE s.user_id IS NOT NULL OR m.user_id IS NOT NULL OR t.hosts IS NOT NULL`;
}

function selected(column: SettingsColumn): string {
  return isKeyColumn(column) ? `s.${column} IS NOT NULL AS ${column}_set` : `s.${column}`;
}

/** What decides where a model is called, with which key and which headers. */
const MODEL_COLUMNS = ['llm_model', 'llm_base_url', 'llm_api_key', 'details'] as const;
type ModelColumns = Pick<Settings, (typeof MODEL_COLUMNS)[number]>;

/** The model of a user, with its key in clear. */
export type StoredModel = Pick<ModelColumns, 'llm_model' | 'llm_base_url' | 'llm_api_key'> & {
  details: SettingsDetails;
};

/** Clients send few different sets of members; beyond this many, statements stay unnamed (each name costs memory). */
const MAX_NAMED_UPSERTS = 32;

/**
 * The `settings` table; keys are encrypted on their way in. Requests are merged by PostgreSQL itself: one statement
 * touches the given columns only, so concurrent requests never lose each other's members. The statements of
 * `GET` and `POST /api/settings` are named (docs/adr/0006).
 */
@Injectable()
export class SettingsRepository extends Repository<Settings> {
  private readonly loadStatement = new NamedStatement<{ settings: SettingsRow }>(
    'settings_load',
    LOAD_AS_JSON,
  );
  /** Statements by the columns that they set. */
  private readonly upsertStatements = new Map<string, NamedStatement<ModelColumns>>();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(Settings, dataSource.manager);
  }

  /** What is stored for the user, or null when nothing is: no settings, no tool servers, no provider tokens. */
  async load(userId: string): Promise<SettingsRow | null> {
    const [row] = await this.loadStatement.run(this.dataSource, [userId]);
    return row?.settings ?? null;
  }

  /**
   * The user's settings and their keys in clear, with one read; `settings` is null for a user who stored none.
   *
   * @throws SecretDecryptionError when a stored key is not readable with the configured keys
   */
  async loadWithKeys(
    userId: string,
    manager: EntityManager = this.manager,
  ): Promise<{ settings: Settings | null; keys: SettingsKeys; details: SettingsDetails }> {
    const settings = await manager.findOneBy(Settings, { userId });
    return { settings, keys: this.inClear(userId, settings), details: this.detailsOf(userId, settings) };
  }

  /**
   * What {@link load} finds, and the keys in clear, with one read.
   *
   * @throws SecretDecryptionError when a stored key is not readable with the configured keys
   */
  async loadShownWithKeys(
    userId: string,
  ): Promise<{ row: SettingsRow | null; keys: SettingsKeys; details: SettingsDetails }> {
    const rows: (SettingsRow & SettingsKeys & Pick<Settings, 'details'>)[] = await this.query(
      LOAD_SETTINGS_AND_KEYS,
      [userId],
    );
    const row = rows[0] ?? null;
    return { row, keys: this.inClear(userId, row), details: this.detailsOf(userId, row) };
  }

  /** Replaces what is stored beyond the columns; the user's settings exist already, and the caller has locked the user. */
  async storeDetails(
    manager: EntityManager,
    userId: string,
    before: SettingsDetails,
    details: SettingsDetails,
  ): Promise<void> {
    const record = this.cipher.encrypt(JSON.stringify(details), settingsBinding('details', userId));
    await manager.update(Settings, { userId }, { details: record });
    const members = changedPaths(before, details);
    if (members.length > 0) {
      await this.audit.append(manager, { ...settingsEntry(userId), details: { members } });
    }
  }

  /**
   * Merges the changes into the user's settings, which exist from then on, and replaces the tool servers if some are
   * given: one statement, all of it or nothing.
   *
   * @returns the model of before; null when nothing was stored, because the stored tool servers have to be read first
   * @throws DomainError unauthorized when the user has been removed meanwhile
   */
  async store(
    userId: string,
    changes: SettingsChanges,
    mcpConfig?: McpConfigColumns,
  ): Promise<StoredModel | null> {
    const own = this.storedValues(userId, changes);
    const record = this.audit.record(settingsEntry(userId));
    const values = mcpConfig
      ? [userId, mcpConfig.config, mcpConfig.secrets, record, this.mcpRecord(userId, mcpConfig), ...own]
      : [userId, record, ...own];
    try {
      const [before] = await this.runUpsert([...changes.keys()], mcpConfig !== undefined, values);
      return mcpConfig !== undefined && before === undefined ? null : this.modelOf(userId, before ?? null);
    } catch (error) {
      throw userIsGone(error) ? new DomainError('unauthorized', 'unauthorized', 'Unauthorized') : error;
    }
  }

  /** {@link store} as a part of {@link transaction}. */
  async storeWithin(manager: EntityManager, userId: string, changes: SettingsChanges): Promise<StoredModel> {
    const [before]: ModelColumns[] = await manager.query(settingsUpsert([...changes.keys()]), [
      userId,
      this.audit.record(settingsEntry(userId)),
      ...this.storedValues(userId, changes),
    ]);
    return this.modelOf(userId, before ?? null);
  }

  /**
   * A transaction around more than the settings; those of one user take turns.
   *
   * @throws DomainError unauthorized when the user has been removed meanwhile
   */
  async transaction<T>(userId: string, work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      return work(manager);
    });
  }

  private mcpRecord(userId: string, { servers }: McpConfigColumns): string {
    return this.audit.record({
      action: 'mcp_servers.update',
      resourceId: null,
      ownerId: userId,
      details: { servers },
    });
  }

  private modelOf(userId: string, stored: ModelColumns | null): StoredModel {
    const key = stored?.llm_api_key ?? null;
    return {
      llm_model: stored?.llm_model ?? null,
      llm_base_url: stored?.llm_base_url ?? null,
      llm_api_key: key && this.cipher.decrypt(key, settingsBinding('llm_api_key', userId)),
      details: this.detailsOf(userId, stored),
    };
  }

  private inClear(userId: string, stored: SettingsKeys | null): SettingsKeys {
    const inClear = (column: SettingsKeyColumn): string | null => {
      const record = stored?.[column] ?? null;
      return record === null ? null : this.cipher.decrypt(record, settingsBinding(column, userId));
    };
    return {
      llm_api_key: inClear('llm_api_key'),
      search_api_key: inClear('search_api_key'),
      sandbox_api_key: inClear('sandbox_api_key'),
    };
  }

  private detailsOf(userId: string, stored: Pick<Settings, 'details'> | null): SettingsDetails {
    const record = stored?.details ?? null;
    return record === null
      ? NO_DETAILS
      : { ...NO_DETAILS, ...JSON.parse(this.cipher.decrypt(record, settingsBinding('details', userId))) };
  }

  private storedValues(userId: string, changes: SettingsChanges): unknown[] {
    return [...changes].map(([column, value]) =>
      isKeyColumn(column) && typeof value === 'string'
        ? this.cipher.encrypt(value, settingsBinding(column, userId))
        : value,
    );
  }

  private async runUpsert(
    columns: readonly SettingsColumn[],
    withMcp: boolean,
    values: readonly unknown[],
  ): Promise<ModelColumns[]> {
    const key = `${withMcp ? 'mcp ' : ''}${columns.join(' ')}`;
    let statement = this.upsertStatements.get(key);
    if (!statement) {
      const text = withMcp ? settingsAndMcpUpsert(columns) : settingsUpsert(columns);
      if (this.upsertStatements.size >= MAX_NAMED_UPSERTS) {
        return this.query(text, [...values]);
      }
      statement = new NamedStatement(`settings_upsert_${this.upsertStatements.size + 1}`, text);
      this.upsertStatements.set(key, statement);
    }
    return statement.run(this.dataSource, values);
  }
}

function settingsEntry(userId: string): NewAuditEntry {
  return { action: 'settings.update', resourceId: null, ownerId: userId };
}

/** How deep names are compared: `agent.llm.temperature`. */
const PATH_DEPTH = 3;

/** Dotted names of the members that differ. */
function changedPaths(before: unknown, after: unknown, path: readonly string[] = []): string[] {
  if (isDeepStrictEqual(before ?? {}, after ?? {})) {
    return [];
  }
  const [old, now] = [before, after].map((value) => (isJsonObject(value) ? value : {}));
  const names = path.length < PATH_DEPTH ? Object.keys({ ...old, ...now }) : [];
  return names.length === 0
    ? [path.join('.')]
    : names.flatMap((name) => changedPaths(old?.[name], now?.[name], [...path, name]));
}

/**
 * The statement that sets the columns ($3 and on) of a user's settings ($1) and leaves all others alone; columns that
 * a new row does not get have their defaults. It returns the model of before. It appends the audit entry ($2) too, unless nothing changes.
 */
function settingsUpsert(columns: readonly SettingsColumn[]): string {
  const parameters = columns.map((_column, index) => `$${index + 3}`);
  // The count makes sure that the row is locked, and read, before it is written.
  const source = `SELECT ${['$1', ...parameters].join(', ')} FROM (SELECT count(*) FROM before) AS locked`;
  return `
    WITH before AS MATERIALIZED (${lockedSettings(columns, '$1')}),
    own AS (${upsert(columns, source)}),
    audited AS (${appendChanges(columns, '$2', 3)})
    SELECT ${MODEL_COLUMNS.join(', ')} FROM before`;
}

/**
 * {@link settingsUpsert} together with the user's tool servers ($2 shown, $3 secrets; the audit entries are $4 and $5, the
 * columns $6 and on), as one statement: all of it or nothing, in one round trip. Like every writer of several of a user's
 * rows it locks the user's own row first, see `lockUser`; for a user who is gone `user_id` would be null, which the tables
 * refuse.
 */
function settingsAndMcpUpsert(columns: readonly SettingsColumn[]): string {
  const parameters = columns.map((_column, index) => `$${index + 6}`);
  const source = `SELECT ${['user_id', ...parameters].join(', ')} FROM mcp, (SELECT count(*) FROM before) AS locked`;
  return `
    WITH owner AS MATERIALIZED (SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE),
    mcp_before AS MATERIALIZED (${mcpConfigLock('(SELECT id FROM owner)')}),
    before AS MATERIALIZED (${lockedSettings(columns, '(SELECT id FROM owner)')}),
    mcp AS (${mcpConfigUpsert('(SELECT id FROM owner, (SELECT count(*) FROM mcp_before) AS locked)', '$2', '$3')}),
    own AS (${upsert(columns, source)}),
    audited AS (${appendChanges(columns, '$4', 6)}),
    mcp_audited AS (${auditInsert({
      entries: '$5',
      from: 'mcp LEFT JOIN mcp_before ON true',
      where: `mcp_before.config IS DISTINCT FROM $2 OR mcp_before.secrets IS NOT NULL OR $3 IS NOT NULL`,
    })})
    SELECT ${MODEL_COLUMNS.map((column) => `before.${column}`).join(', ')} FROM mcp LEFT JOIN before ON true`;
}

function lockedSettings(columns: readonly SettingsColumn[], owner: string): string {
  const read = new Set(['user_id', ...columns, ...MODEL_COLUMNS]);
  return `SELECT ${[...read].join(', ')} FROM settings WHERE user_id = ${owner} FOR NO KEY UPDATE`;
}

/** Names the columns that differ from `before`. The stored form of a key never is the same twice: a key counts as changed. */
function appendChanges(columns: readonly SettingsColumn[], entries: string, firstParameter: number): string {
  const names = columns.map((column, index) => {
    const parameter = `$${index + firstParameter}`;
    const differs = isKeyColumn(column)
      ? `${parameter} IS NOT NULL OR before.${column} IS NOT NULL`
      : `before.${column} IS DISTINCT FROM ${parameter}`;
    return `CASE WHEN ${differs} THEN '${column}' END`;
  });
  const members = `array_remove(ARRAY[${names.join(', ')}]::text[], NULL) AS members`;
  return auditInsert({
    entries,
    from: `(SELECT ${members}, before.user_id IS NULL AS is_new FROM own LEFT JOIN before ON true) AS change`,
    where: 'change.is_new OR cardinality(change.members) > 0',
    details: `jsonb_build_object('members', to_jsonb(change.members))`,
  });
}

function upsert(columns: readonly SettingsColumn[], source: string): string {
  const updates = columns.map((column) => `${column} = excluded.${column}`);
  const onConflict =
    updates.length === 0 ? 'NOTHING' : `UPDATE SET ${updates.join(', ')}, updated_at = now()`;
  return `
    INSERT INTO settings (${['user_id', ...columns].join(', ')}) ${source}
    ON CONFLICT (user_id) DO ${onConflict} RETURNING user_id`;
}
