import {
  Column,
  CreateDateColumn,
  Entity,
  UpdateDateColumn,
  DataSource,
  type EntityManager,
  Repository,
} from 'typeorm';
import { Injectable } from '@nestjs/common';
import { UserKeyedRow, lockUser } from '../auth/user.repository.js';
import {
  isKeyColumn,
  SETTINGS,
  SETTINGS_COLUMNS,
  SETTINGS_KEY_COLUMNS,
  type SettingsColumn,
  type SettingsKeyColumn,
  type SettingsValues,
} from './settings.schema.js';
import * as table from './settings-table.js';
import { settingsBinding, type SettingsKeys } from './settings-table.js';
import { AuditRepository, type NewAuditEntry } from '../audit/audit.repository.js';
import { NamedStatement } from '../database/named-statement.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { changedPaths, type SettingsDetails, NO_DETAILS } from './nested/nested-settings.js';

/**
 * A user's settings, one typed column each. Members are named as on the wire: one vocabulary from the request to the
 * column. The three keys are encrypted; the MCP configuration and the secrets have tables of their own.
 */
@Entity('settings')
export class Settings extends UserKeyedRow implements SettingsValues {
  @Column('text', { nullable: true }) language: string | null;
  @Column('text', { nullable: true }) agent: string | null;
  @Column('integer', { nullable: true }) max_iterations: number | null;
  @Column('text', { nullable: true }) security_analyzer: string | null;
  @Column('boolean', { nullable: true }) confirmation_mode: boolean | null;
  @Column('text', { nullable: true }) llm_model: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) llm_api_key: string | null;
  @Column('text', { nullable: true }) llm_base_url: string | null;
  @Column('integer', { nullable: true }) remote_runtime_resource_factor: number | null;

  @Column('boolean', { default: SETTINGS.enable_default_condenser.default })
  enable_default_condenser: boolean;

  @Column('boolean', { default: SETTINGS.enable_sound_notifications.default })
  enable_sound_notifications: boolean;

  @Column('boolean', { default: SETTINGS.enable_proactive_conversation_starters.default })
  enable_proactive_conversation_starters: boolean;

  @Column('boolean', { default: SETTINGS.enable_solvability_analysis.default })
  enable_solvability_analysis: boolean;

  @Column('boolean', { nullable: true }) user_consents_to_analytics: boolean | null;
  @Column('text', { nullable: true }) sandbox_base_container_image: string | null;
  @Column('text', { nullable: true }) sandbox_runtime_container_image: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) search_api_key: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) sandbox_api_key: string | null;
  @Column('double precision', { nullable: true }) max_budget_per_task: number | null;
  @Column('text', { nullable: true }) email: string | null;
  @Column('boolean', { nullable: true }) email_verified: boolean | null;
  @Column('text', { nullable: true }) git_user_name: string | null;
  @Column('text', { nullable: true }) git_user_email: string | null;
  @Column('text', { nullable: true }) fork: SettingsValues['fork'];
  @Column('integer', { nullable: true }) clone_depth: number | null;
  @Column('text', { nullable: true }) clone_filter: SettingsValues['clone_filter'];

  /** Encrypted JSON of what the nested settings have beyond these columns, see `SettingsDetails`. */
  @Column('text', { nullable: true }) details: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

type EncryptedColumn = SettingsKeyColumn | 'details';

export type StoredColumns = Pick<Settings, SettingsColumn | 'details'>;

/** What is encrypted in a row of the settings; a column that is absent counts as empty. */
export type EncryptedColumns = Partial<Record<EncryptedColumn, string | null>>;

/** Reads and writes the encrypted columns. What it reads is never for a log. @throws SecretDecryptionError */
@Injectable()
export class SettingsCipher {
  constructor(private readonly cipher: SecretCipher) {}

  encrypted(
    userId: string,
    values: readonly (readonly [SettingsColumn | 'details', unknown])[],
  ): Partial<StoredColumns> {
    return Object.fromEntries(
      values.map(([column, value]) =>
        typeof value === 'string' && (column === 'details' || isKeyColumn(column))
          ? [column, this.cipher.encrypt(value, settingsBinding(column, userId))]
          : [column, value],
      ),
    );
  }

  keysOf(userId: string, row: EncryptedColumns | null): SettingsKeys {
    return {
      llm_api_key: this.read(userId, 'llm_api_key', row),
      search_api_key: this.read(userId, 'search_api_key', row),
      sandbox_api_key: this.read(userId, 'sandbox_api_key', row),
    };
  }

  detailsOf(userId: string, row: EncryptedColumns | null): SettingsDetails {
    return { ...NO_DETAILS, ...JSON.parse(this.read(userId, 'details', row) ?? '{}') };
  }

  private read(userId: string, column: EncryptedColumn, row: EncryptedColumns | null): string | null {
    const record = row?.[column] ?? null;
    return record === null ? null : this.cipher.decrypt(record, settingsBinding(column, userId));
  }
}

/** What is merged into a row: new values of columns, and what becomes of the details. */
export interface SettingsChange {
  columns: table.SettingsChanges;
  details?: ((stored: SettingsDetails) => SettingsDetails) | undefined;
}

const COLUMNS = [...SETTINGS_COLUMNS, 'details'];

/** Finds no row for a user ($1) without settings, tool servers and provider tokens. */
const LOAD = `
  SELECT ${COLUMNS.map((column) => `s.${column}`).join(', ')},
    ${SETTINGS_KEY_COLUMNS.map((key) => `s.${key} IS NOT NULL AS ${key}_set`).join(', ')},
    m.config AS mcp_config, t.hosts AS provider_tokens_set, t.unverified AS provider_tokens_unverified
  FROM (VALUES ($1::uuid)) AS owner (id)
  LEFT JOIN settings s ON s.user_id = owner.id
  LEFT JOIN mcp_configs m ON m.user_id = owner.id
  LEFT JOIN LATERAL (
    SELECT json_object_agg(provider, host ORDER BY provider) AS hosts,
      json_agg(provider ORDER BY provider) FILTER (WHERE NOT verified) AS unverified
    FROM provider_tokens WHERE user_id = owner.id
  ) t ON true
  WHERE s.user_id IS NOT NULL OR m.user_id IS NOT NULL OR t.hosts IS NOT NULL`;

const READ_LOCKED = new NamedStatement<StoredColumns>(
  'settings_lock',
  `SELECT ${COLUMNS.join(', ')} FROM settings WHERE user_id = $1 FOR NO KEY UPDATE`,
);

@Injectable()
export class SettingsRepository extends Repository<Settings> {
  private readonly loadStatement = new NamedStatement<table.SettingsRow & EncryptedColumns>(
    'settings_load',
    LOAD,
  );

  constructor(
    private readonly dataSource: DataSource,
    private readonly cipher: SettingsCipher,
    private readonly audit: AuditRepository,
  ) {
    super(Settings, dataSource.manager);
  }

  /** Everything that responses show, and the encrypted columns beside it; null when nothing is stored. */
  async load(userId: string): Promise<(table.SettingsRow & EncryptedColumns) | null> {
    const [row] = await this.loadStatement.run(this.dataSource, [userId]);
    return row ?? null;
  }

  /** `settings` is null for a user who stored none. @throws SecretDecryptionError */
  async loadWithKeys(
    userId: string,
    manager: EntityManager = this.manager,
  ): Promise<{ settings: Settings | null; keys: table.SettingsKeys; details: SettingsDetails }> {
    const settings = await manager.findOneBy(Settings, { userId });
    const keys = this.cipher.keysOf(userId, settings);
    return { settings, keys, details: this.cipher.detailsOf(userId, settings) };
  }

  /** The user's transactions take turns. @throws DomainError unauthorized for a user who was removed meanwhile */
  async transaction<T>(userId: string, work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      return work(manager);
    });
  }

  /** Merges within {@link transaction}, and writes what differs. @returns the row before and after */
  async mergeWithin(
    manager: EntityManager,
    userId: string,
    { columns, details: change }: SettingsChange,
  ): Promise<{ before: StoredColumns | null; after: StoredColumns }> {
    const [before = null] = await READ_LOCKED.within(manager, [userId]);
    const changes = [...columns].filter(([column, value]) =>
      differs(column, before?.[column] ?? null, value),
    );
    const stored = change && this.cipher.detailsOf(userId, before);
    const details = stored && change?.(stored);
    const paths = changedPaths(stored, details);
    const values = this.cipher.encrypted(userId, [
      ...changes,
      ...(paths.length > 0 ? [['details', JSON.stringify(details)] as const] : []),
    ]);
    if (before === null || Object.keys(values).length > 0) {
      await manager.upsert(Settings, { userId, ...values, updatedAt: () => 'now()' }, ['userId']);
      const members = changes.map(([column]) => column);
      await this.audit.append(
        manager,
        ...(before === null || members.length > 0 ? [updateOf(userId, members)] : []),
        ...(paths.length > 0 ? [updateOf(userId, paths)] : []),
      );
    }
    return { before, after: { ...table.INITIAL_COLUMNS, details: null, ...before, ...values } };
  }
}

/** The stored form of a key never is the same twice: a key that is given counts as changed. */
function differs(column: SettingsColumn, stored: unknown, value: unknown): boolean {
  return isKeyColumn(column) ? stored !== null || value !== null : stored !== value;
}

function updateOf(ownerId: string, members: readonly string[]): NewAuditEntry {
  return { action: 'settings.update', resourceId: null, ownerId, details: { members } };
}
