import { isDeepStrictEqual } from 'node:util';
import {
  Column,
  type ColumnType,
  CreateDateColumn,
  Entity,
  UpdateDateColumn,
  DataSource,
  type EntityManager,
  In,
  Repository,
} from 'typeorm';
import { Injectable } from '@nestjs/common';
import { UserKeyedRow, lockUser } from '../auth/user.repository.js';
import { INSTALLATION_ORGANIZATION_ID } from '../organizations/installation-organization.js';
import {
  isKeyColumn,
  memberSchema,
  type PlainColumn,
  type SettingsDocument,
  SETTINGS_KEY_COLUMNS,
  type SettingsColumn,
  type SettingsKeyColumn,
  type SettingsValues,
} from '@slipway/settings/settings.schema.js';
import {
  emptySettingsRow,
  INITIAL_COLUMNS,
  type SettingsChanges,
  type SettingsKeys,
  type SettingsRow,
} from '@slipway/settings/settings-row.js';
import { AuditRepository, type NewAuditEntry } from '../audit/audit.repository.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { type EncryptedColumn, SecretCipher } from '@slipway/common/secret-cipher.js';
import { changedPaths, type SettingsDetails, NO_DETAILS } from '@slipway/settings/nested-settings.js';

/** What an encrypted key is bound to: copied to another user or column it does not decrypt. */
export function settingsBinding(column: EncryptedName, userId: string): string {
  return `settings.${column}:${userId}`;
}

export const SETTINGS_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  ...SETTINGS_KEY_COLUMNS,
  'details' as const,
].map((column) => ({
  table: 'settings',
  column,
  keyColumns: ['user_id'],
  binding: ({ user_id = '' }: Record<string, string>) => settingsBinding(column, user_id),
}));

/** A user's settings: a document, and beside it what is encrypted. Tool servers and secrets have tables of their own. */
@Entity('settings')
export class Settings extends UserKeyedRow {
  @Column('jsonb', { default: {} }) document: SettingsDocument;
  @Column('text', { nullable: true }) llm_api_key: string | null;
  @Column('text', { nullable: true }) search_api_key: string | null;
  @Column('text', { nullable: true }) sandbox_api_key: string | null;

  /** Encrypted JSON of what the nested settings have beyond the document, see `SettingsDetails`. */
  @Column('text', { nullable: true }) details: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/**
 * Columns that version 0.2.0 has for members of the document. A trigger keeps both the same while its replicas run beside
 * ours, so nothing here reads or writes them. New members get none.
 */
const COLUMNS_OF_BEFORE: Readonly<Record<string, ColumnType>> = {
  language: 'text',
  agent: 'text',
  max_iterations: 'integer',
  security_analyzer: 'text',
  confirmation_mode: 'boolean',
  llm_model: 'text',
  llm_base_url: 'text',
  remote_runtime_resource_factor: 'integer',
  enable_default_condenser: 'boolean',
  enable_sound_notifications: 'boolean',
  enable_proactive_conversation_starters: 'boolean',
  enable_solvability_analysis: 'boolean',
  user_consents_to_analytics: 'boolean',
  sandbox_base_container_image: 'text',
  sandbox_runtime_container_image: 'text',
  max_budget_per_task: 'double precision',
  email: 'text',
  email_verified: 'boolean',
  git_user_name: 'text',
  git_user_email: 'text',
  fork: 'text',
  clone_depth: 'integer',
  clone_filter: 'text',
};
for (const [name, type] of Object.entries(COLUMNS_OF_BEFORE)) {
  const preset = memberSchema(name as PlainColumn).default;
  const value = preset === undefined ? { nullable: true } : { default: preset };
  Column({ type, ...value, select: false, insert: false, update: false })(Settings.prototype, name);
}

type EncryptedName = SettingsKeyColumn | 'details';

/** A user's row with a value for each member. */
export type StoredColumns = SettingsValues & { details: string | null };

/** What is encrypted in a row of the settings; a column that is absent counts as empty. */
export type EncryptedColumns = Partial<Record<EncryptedName, string | null>>;

/** Reads and writes the encrypted columns. What it reads is never for a log. @throws SecretDecryptionError */
@Injectable()
export class SettingsCipher {
  constructor(private readonly cipher: SecretCipher) {}

  /** @param values null removes one */
  encrypted(userId: string, values: EncryptedColumns): EncryptedColumns {
    return Object.fromEntries(
      ENCRYPTED.flatMap((column) => {
        const value = values[column] ?? null;
        const record = value === null ? null : this.cipher.encrypt(value, settingsBinding(column, userId));
        return column in values ? [[column, record]] : [];
      }),
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

  private read(userId: string, column: EncryptedName, row: EncryptedColumns | null): string | null {
    const record = row?.[column] ?? null;
    return record === null ? null : this.cipher.decrypt(record, settingsBinding(column, userId));
  }
}

/** `settings` is null for an owner who stored none. */
interface SettingsWithKeys {
  settings: Pick<SettingsRow, PlainColumn> | null;
  keys: SettingsKeys;
  details: SettingsDetails;
  document: SettingsDocument;
}

/** What is merged into a row: new values of columns, and what becomes of the details. */
export interface SettingsChange {
  columns: SettingsChanges;
  details?: ((stored: SettingsDetails) => SettingsDetails) | undefined;
  /** It may send back what it was shown, which is no choice of its sender. */
  isForm?: boolean;
}

const ENCRYPTED = [...SETTINGS_KEY_COLUMNS, 'details'] as const;
const COLUMNS = ['document', ...ENCRYPTED];

type StoredRow = Pick<Settings, 'document' | EncryptedName>;
type LoadedRow = Pick<Settings, 'document'> & EncryptedColumns & Omit<SettingsRow, PlainColumn>;

const EMPTY_ROW = {
  llm_api_key: null,
  search_api_key: null,
  sandbox_api_key: null,
  details: null,
} satisfies Record<EncryptedName, null>;

function inColumns({ document, ...encrypted }: StoredRow): StoredColumns {
  return { ...INITIAL_COLUMNS, ...document, ...encrypted };
}

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

const READ_LOCKED = new NamedStatement<StoredRow>(
  'settings_lock',
  `SELECT ${COLUMNS.join(', ')} FROM settings WHERE user_id = $1 FOR NO KEY UPDATE`,
);

const READ_DOCUMENT = new NamedStatement<Pick<Settings, 'document'>>(
  'settings_document',
  'SELECT document FROM settings WHERE user_id = $1',
);

@Injectable()
export class SettingsRepository extends Repository<Settings> {
  private readonly loadStatement = new NamedStatement<LoadedRow>('settings_load', LOAD);

  constructor(
    private readonly dataSource: DataSource,
    private readonly cipher: SettingsCipher,
    private readonly audit: AuditRepository,
  ) {
    super(Settings, dataSource.manager);
  }

  /** Everything that responses show, and the encrypted columns beside it; null when nothing is stored. */
  async load(userId: string): Promise<(SettingsRow & EncryptedColumns) | null> {
    const [row] = await this.loadStatement.run(this.dataSource, [userId]);
    if (row === undefined) {
      return null;
    }
    const { document, ...rest } = row;
    return { ...emptySettingsRow(), ...document, ...rest };
  }

  /** @throws SecretDecryptionError */
  async loadWithKeys(userId: string, manager: EntityManager = this.manager): Promise<SettingsWithKeys> {
    return this.withKeys(userId, await manager.findOneBy(Settings, { userId }));
  }

  /** Returns what {@link loadWithKeys} finds, by owner. */
  async loadEachWithKeys(ownerIds: readonly string[]): Promise<(ownerId: string) => SettingsWithKeys> {
    const rows = await this.findBy({ userId: In(ownerIds) });
    return (ownerId) => this.withKeys(ownerId, rows.find(({ userId }) => userId === ownerId) ?? null);
  }

  /** The members that may be shown, those of the user over those of the organization. */
  async effective(userId: string): Promise<EffectiveSettings> {
    const rows = await this.findBy({ userId: In([userId, INSTALLATION_ORGANIZATION_ID]) });
    const documentOf = (id: string): SettingsDocument =>
      rows.find((row) => row.userId === id)?.document ?? {};
    return effectiveSettings(documentOf(userId), documentOf(INSTALLATION_ORGANIZATION_ID));
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
    { columns, details: change, isForm = false }: SettingsChange,
  ): Promise<{ before: StoredColumns | null; after: StoredColumns }> {
    const [row = null] = await READ_LOCKED.within(manager, [userId]);
    const below = await this.documentBelow(manager, userId);
    const before = row && inColumns(row);
    const echoed = isForm ? echoesOf(below, columns, row) : {};
    const changes = [...columns].filter(([column, value]) =>
      isKeyColumn(column)
        ? differsAsKey(before?.[column] ?? null, value)
        : !isDeepStrictEqual(value, standing(row, column, value === null ? {} : echoed, below)),
    );
    const stored = change && this.cipher.detailsOf(userId, row);
    const details = stored && change?.(stored);
    const paths = changedPaths(stored, details);
    const members = changes.map(([column]) => column);
    const document = withChanges(row?.document, changes, below);
    const encrypted = this.cipher.encrypted(userId, {
      ...Object.fromEntries(changes.filter(([column]) => isKeyColumn(column))),
      ...(paths.length > 0 && { details: JSON.stringify(details) }),
    });
    if (row === null || members.length + paths.length > 0) {
      const values = { userId, document, ...encrypted, updatedAt: () => 'now()' };
      await manager.upsert(Settings, values, ['userId']);
      await this.audit.append(
        manager,
        ...(row === null || members.length > 0 ? [updateOf(userId, members)] : []),
        ...(paths.length > 0 ? [updateOf(userId, paths)] : []),
      );
    }
    return { before, after: inColumns({ ...EMPTY_ROW, ...row, document, ...encrypted }) };
  }

  private withKeys(ownerId: string, row: Settings | null): SettingsWithKeys {
    const { document = {} } = row ?? {};
    const settings = row && { ...emptySettingsRow(), ...document };
    const [keys, details] = [this.cipher.keysOf(ownerId, row), this.cipher.detailsOf(ownerId, row)];
    return { settings, keys, details, document };
  }

  private async documentBelow(manager: EntityManager, ownerId: string): Promise<SettingsDocument> {
    const id = INSTALLATION_ORGANIZATION_ID;
    const [row] = ownerId === id ? [] : await READ_DOCUMENT.within(manager, [id]);
    return row?.document ?? {};
  }
}

/** Rules of the network do not lie over each other: both hold. */
export interface EffectiveSettings extends Pick<SettingsRow, PlainColumn> {
  egress: Record<'organization' | 'settings', object | null>;
}

export function effectiveSettings(own: SettingsDocument, organization: SettingsDocument): EffectiveSettings {
  return {
    ...emptySettingsRow(),
    ...organization,
    ...own,
    egress: {
      organization: organization.sandbox_egress ?? null,
      settings: own.sandbox_egress ?? null,
    },
  };
}

/** What a form may send back of values that lie below. With a key or address beside it, a model is the sender's own. */
function echoesOf(
  below: SettingsDocument,
  columns: SettingsChanges,
  row: StoredRow | null,
): SettingsDocument {
  const address = columns.has('llm_base_url') ? columns.get('llm_base_url') : row?.document.llm_base_url;
  const isOwnModel = typeof address === 'string' || typeof columns.get('llm_api_key') === 'string';
  return { ...below, ...(isOwnModel && { llm_model: undefined }) };
}

/** What a member is before a change. A default that lies over another value was not chosen by the owner. */
function standing(
  row: StoredRow | null,
  column: PlainColumn,
  echoed: SettingsDocument,
  below: SettingsDocument,
): unknown {
  const unset = row === null || column in below ? null : INITIAL_COLUMNS[column];
  return row?.document[column] ?? echoed[column] ?? unset;
}

/** A default is stored where it lies over another value. */
function withChanges(
  document: SettingsDocument = {},
  changes: readonly (readonly [SettingsColumn, unknown])[],
  below: SettingsDocument,
): SettingsDocument {
  const plain = changes.filter(([column]) => !isKeyColumn(column));
  const members = Object.entries({ ...document, ...Object.fromEntries(plain) }) as [PlainColumn, unknown][];
  return Object.fromEntries(
    members.filter(
      ([name, value]) =>
        value !== INITIAL_COLUMNS[name] || (value !== null && name in below && value !== below[name]),
    ),
  );
}

/** The stored form of a key never is the same twice: a key that is given counts as changed. */
function differsAsKey(stored: unknown, value: unknown): boolean {
  return stored !== null || value !== null;
}

function updateOf(ownerId: string, members: readonly string[]): NewAuditEntry {
  return { action: 'settings.update', resourceId: null, ownerId, details: { members } };
}
