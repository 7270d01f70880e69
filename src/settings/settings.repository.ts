import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { AuditRepository, auditInsert, type NewAuditEntry } from '../audit/audit.repository.js';
import { lockUser, UserRowLock } from '../auth/user.repository.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { NamedStatement } from '../database/named-statement.js';
import { changedPaths, NO_DETAILS, type SettingsDetails } from './nested/nested-settings.js';
import {
  INITIAL_COLUMNS,
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
import { Settings } from './settings.entity.js';

/** Everything `GET /api/settings` shows, in one statement. No row: nothing is stored for the user ($1). */
export const LOAD_SETTINGS = loadSettings(SETTINGS_COLUMNS.map(selected));

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

/** What is encrypted in a row, in clear: never for a log or a response. */
interface InClear {
  keys: SettingsKeys;
  details: SettingsDetails;
}

/** What is merged into a row: new values of columns, and what becomes of the details. */
export interface SettingsChange {
  columns: SettingsChanges;
  details?: (stored: SettingsDetails) => SettingsDetails;
}

/** A row as it is stored, keys and details encrypted. */
export type StoredColumns = Pick<Settings, SettingsColumn | 'details'>;
type EncryptedColumns = Pick<Settings, SettingsKeyColumn | 'details'>;

const COLUMNS = [...SETTINGS_COLUMNS, 'details'] as const;
const LOCK = new UserRowLock<StoredColumns>('settings', COLUMNS);
/**
 * All columns ($3 and on) of a user ($1), and the audit entries ($2). The row is locked, so what does not change can be
 * written as it was read.
 */
const STORE = new NamedStatement(
  'settings_store',
  `WITH stored AS (
     INSERT INTO settings (user_id, ${COLUMNS.join(', ')})
     VALUES ($1, ${COLUMNS.map((_column, index) => `$${index + 3}`).join(', ')})
     ON CONFLICT (user_id) DO UPDATE SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')}, updated_at = now())
   ${auditInsert({ entries: '$2' })}`,
);

/** The `settings` table: encrypts what goes in and decrypts what comes out. Writers lock the user first. */
@Injectable()
export class SettingsRepository extends Repository<Settings> {
  private readonly loadStatement = new NamedStatement<SettingsRow>('settings_load', LOAD_SETTINGS);

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
    return row ?? null;
  }

  /**
   * The user's settings and their keys in clear, with one read; `settings` is null for a user who stored none.
   *
   * @throws SecretDecryptionError when a stored key is not readable with the configured keys
   */
  async loadWithKeys(
    userId: string,
    manager: EntityManager = this.manager,
  ): Promise<InClear & { settings: Settings | null }> {
    const settings = await manager.findOneBy(Settings, { userId });
    return { settings, ...this.inClear(userId, settings) };
  }

  /**
   * What {@link load} finds, and the keys in clear, with one read.
   *
   * @throws SecretDecryptionError when a stored key is not readable with the configured keys
   */
  async loadShownWithKeys(userId: string): Promise<InClear & { row: SettingsRow | null }> {
    const [row = null] = await this.query<(SettingsRow & EncryptedColumns)[]>(LOAD_SETTINGS_AND_KEYS, [
      userId,
    ]);
    return { row, ...this.inClear(userId, row) };
  }

  /**
   * A transaction that locks the user first, so that those of one user take turns.
   *
   * @throws DomainError unauthorized when the user has been removed meanwhile
   */
  async transaction<T>(userId: string, work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      return work(manager);
    });
  }

  /**
   * Merges changes into the user's settings, which exist from then on, within the caller's transaction, and locks the
   * user. Without a difference nothing is written, and no audit entry.
   *
   * @returns the row before and after, its keys still encrypted
   * @throws DomainError unauthorized when the user has been removed meanwhile
   */
  async mergeWithin(
    manager: EntityManager,
    userId: string,
    change: SettingsChange,
  ): Promise<{ before: StoredColumns | null; after: StoredColumns }> {
    const before = await LOCK.take(manager, userId);
    const columns = [...change.columns].filter(([column, value]) =>
      differs(column, before?.[column] ?? null, value),
    );
    const values: Partial<StoredColumns> = Object.fromEntries(
      columns.map(([column, value]) => [column, this.stored(userId, column, value)]),
    );
    const details = change.details && this.detailsOf(userId, before);
    const changed = details && change.details?.(details);
    if (!isDeepStrictEqual(details, changed)) {
      values.details = this.cipher.encrypt(JSON.stringify(changed), settingsBinding('details', userId));
    }
    const after: StoredColumns = { ...INITIAL_COLUMNS, details: null, ...before, ...values };
    if (before === null || Object.keys(values).length > 0) {
      const members = columns.map(([column]) => column);
      const paths = changedPaths(details, changed);
      const entries = [
        ...(before === null || members.length > 0 ? [settingsEntry(userId, members)] : []),
        ...(paths.length > 0 ? [settingsEntry(userId, paths)] : []),
      ];
      const record = this.audit.record(...entries);
      await STORE.within(manager, [userId, record, ...COLUMNS.map((column) => after[column])]);
    }
    return { before, after };
  }

  /** @throws SecretDecryptionError when a stored key is not readable with the configured keys */
  inClear(userId: string, row: Partial<EncryptedColumns> | null): InClear {
    const key = (column: SettingsKeyColumn): string | null => {
      const record = row?.[column] ?? null;
      return record === null ? null : this.cipher.decrypt(record, settingsBinding(column, userId));
    };
    return {
      keys: {
        llm_api_key: key('llm_api_key'),
        search_api_key: key('search_api_key'),
        sandbox_api_key: key('sandbox_api_key'),
      },
      details: this.detailsOf(userId, row),
    };
  }

  private detailsOf(userId: string, row: Partial<EncryptedColumns> | null): SettingsDetails {
    const record = row?.details ?? null;
    return record === null
      ? NO_DETAILS
      : { ...NO_DETAILS, ...JSON.parse(this.cipher.decrypt(record, settingsBinding('details', userId))) };
  }

  private stored<T>(userId: string, column: SettingsColumn, value: T): T | string {
    return isKeyColumn(column) && typeof value === 'string'
      ? this.cipher.encrypt(value, settingsBinding(column, userId))
      : value;
  }
}

function settingsEntry(userId: string, members: readonly string[]): NewAuditEntry {
  return { action: 'settings.update', resourceId: null, ownerId: userId, details: { members } };
}

/** The stored form of a key never is the same twice: a key that is given counts as changed. */
function differs(column: SettingsColumn, stored: unknown, value: unknown): boolean {
  return isKeyColumn(column) ? stored !== null || value !== null : stored !== value;
}
