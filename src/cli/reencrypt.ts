import type { DataSource } from 'typeorm';
import {
  type EncryptedColumn,
  type CipherKey,
  SecretCipher,
  SecretDecryptionError,
} from '@slipway/common/secret-cipher.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { EncryptionKeyCheck, ServiceStateRepository } from '../database/service-state.repository.js';
import { PROVIDER_TOKEN_ENCRYPTED_COLUMNS } from '../git-providers/tokens/provider-token.repository.js';
import { MCP_CONFIG_ENCRYPTED_COLUMNS } from '../settings/mcp/mcp-config.repository.js';
import { AUTOMATION_WEBHOOK_ENCRYPTED_COLUMNS } from '../automations/events/automation-webhook.repository.js';
import { WEBHOOK_ENDPOINT_ENCRYPTED_COLUMNS } from '../outbound-webhooks/webhook-endpoint.repository.js';
import { PUSH_KEYS_ENCRYPTED_COLUMNS } from '../outbound-webhooks/push/push-keys.js';
import { PUSH_SUBSCRIPTION_ENCRYPTED_COLUMNS } from '../outbound-webhooks/push/push-subscription.repository.js';
import { CUSTOM_SECRET_ENCRYPTED_COLUMNS } from '../settings/secrets/custom-secret.repository.js';
import { LLM_PROFILE_ENCRYPTED_COLUMNS } from '../settings/profiles/llm-profile.repository.js';
import { SETTINGS_ENCRYPTED_COLUMNS } from '../settings/settings.repository.js';
import { SESSION_ENCRYPTED_COLUMNS } from '../auth/sessions/session-renewal.js';
import { KEPT_CHANGES_ENCRYPTED_COLUMNS } from '../v1/app-conversations/kept-changes/kept-changes.repository.js';
import { START_TASK_ENCRYPTED_COLUMNS } from '../v1/app-conversations/start-task.entity.js';
import { SANDBOX_ENCRYPTED_COLUMNS } from '../v1/sandboxes/session-key.js';
import type { CommandOutput } from './command-output.js';
import type { KeysSession } from './keys-session.js';

const BATCH = 500;

/** No key column has this name. */
const RECORD = 'encrypted record';

interface EncryptedRecord {
  record: string;
  key: Record<string, string>;
}

/** Identifiers come from the features' own descriptions, never from input. */
class EncryptedColumnQueries {
  private readonly selectFirst: string;
  private readonly selectNext: string;
  private readonly update: string;

  constructor(
    private readonly dataSource: DataSource,
    private readonly column: EncryptedColumn,
  ) {
    const quote = (name: string): string => dataSource.driver.escape(name);
    const table = quote(column.table);
    const value = quote(column.column);
    const keys = column.keyColumns.map(quote);
    const placeholders = (from: number): string => keys.map((_, index) => `$${index + from}`).join(', ');
    const select = (condition: string): string =>
      `SELECT ${keys.map((key) => `${key}::text`).join(', ')}, ${value} AS ${quote(RECORD)}
         FROM ${table} WHERE ${value} IS NOT NULL ${condition}
        ORDER BY ${keys.map((key) => `${table}.${key}`).join(', ')} LIMIT ${column.batch ?? BATCH}`;
    this.selectFirst = select('');
    this.selectNext = select(`AND (${keys.join(', ')}) > (${placeholders(1)})`);
    this.update = `UPDATE ${table} SET ${value} = $1
                    WHERE ${value} = $2 AND (${keys.join(', ')}) = (${placeholders(3)})`;
  }

  /** Reads in batches, in the order of the primary key. */
  async *all(): AsyncGenerator<EncryptedRecord> {
    let after: string[] | null = null;
    for (;;) {
      const rows: Record<string, string>[] = after
        ? await this.dataSource.query(this.selectNext, after)
        : await this.dataSource.query(this.selectFirst);
      for (const { [RECORD]: record = '', ...key } of rows) {
        yield { record, key };
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < (this.column.batch ?? BATCH)) {
        return;
      }
      after = this.keyValues(last);
    }
  }

  /** Returns false when a service has written another record since it was read. */
  async replace({ record, key }: EncryptedRecord, fresh: string): Promise<boolean> {
    const [, affected] = await this.dataSource.query<[unknown, number]>(this.update, [
      fresh,
      record,
      ...this.keyValues(key),
    ]);
    return affected === 1;
  }

  keyValues(row: Record<string, string>): string[] {
    return this.column.keyColumns.map((name) => row[name] ?? '');
  }
}

const ENCRYPTED_COLUMNS: readonly EncryptedColumn[] = [
  ...SETTINGS_ENCRYPTED_COLUMNS,
  ...SESSION_ENCRYPTED_COLUMNS,
  ...LLM_PROFILE_ENCRYPTED_COLUMNS,
  ...CUSTOM_SECRET_ENCRYPTED_COLUMNS,
  ...MCP_CONFIG_ENCRYPTED_COLUMNS,
  ...PROVIDER_TOKEN_ENCRYPTED_COLUMNS,
  ...SANDBOX_ENCRYPTED_COLUMNS,
  ...START_TASK_ENCRYPTED_COLUMNS,
  ...KEPT_CHANGES_ENCRYPTED_COLUMNS,
  ...WEBHOOK_ENDPOINT_ENCRYPTED_COLUMNS,
  ...PUSH_SUBSCRIPTION_ENCRYPTED_COLUMNS,
  ...PUSH_KEYS_ENCRYPTED_COLUMNS,
  ...AUTOMATION_WEBHOOK_ENCRYPTED_COLUMNS,
];

/** Bounds the rounds when a service keeps writing under another key. */
const MAX_ROUNDS = 10;
const MAX_SHOWN_FAILURES = 20;

/**
 * Encrypts every stored secret with the first key, beside running services, in rounds until none is under another key.
 * Then it renews the key check, so that the service starts without the other keys.
 * @throws ConfigError when keys do not fit, records cannot be read, or a service still writes under another key; what
 * was done stays
 */
export async function reencrypt(
  { dataSource, audit }: KeysSession,
  keys: readonly CipherKey[],
  output: CommandOutput,
): Promise<void> {
  const cipher = new SecretCipher(keys);
  const check = new EncryptionKeyCheck(new ServiceStateRepository(dataSource), cipher);
  await check.onModuleInit();
  const rotation = {
    action: 'encryption_keys.rotate',
    resourceId: cipher.currentKeyId,
    ownerId: null,
  } as const;
  await dataSource.transaction((manager) => audit.append(manager, { ...rotation, outcome: 'requested' }));
  const columns = ENCRYPTED_COLUMNS.map((column) => ({
    column,
    queries: new EncryptedColumnQueries(dataSource, column),
    rewritten: 0,
  }));
  for (let round = 1; ; round += 1) {
    let outdated = 0;
    const unreadable: string[] = [];
    for (const entry of columns) {
      const outcome = await reencryptColumn(entry.queries, cipher, entry.column);
      entry.rewritten += outcome.rewritten;
      outdated += outcome.outdated;
      unreadable.push(...outcome.unreadable);
    }
    if (unreadable.length > 0) {
      unreadable.slice(0, MAX_SHOWN_FAILURES).forEach((line) => output.note(line));
      throw new ConfigError(
        `ENCRYPTION_KEYS: ${unreadable.length} records cannot be read; keep all keys, and give the missing one too`,
      );
    }
    if (outdated === 0) {
      break;
    }
    if (round === MAX_ROUNDS) {
      throw new ConfigError(
        'ENCRYPTION_KEYS: a service still encrypts with another key; give every replica the new key first, then run this again',
      );
    }
  }
  const rewritten = columns.filter((entry) => entry.rewritten > 0);
  await dataSource.transaction(async (manager) => {
    await check.renew(manager);
    await audit.append(manager, {
      ...rotation,
      details: { columns: rewritten.map(({ column: { table, column } }) => `${table}.${column}`) },
    });
  });
  for (const { column, rewritten: count } of columns) {
    output.result(`${column.table}.${column.column}: ${count}`);
  }
  output.note(`everything is encrypted with the key "${cipher.currentKeyId}"; the other keys can be removed`);
}

interface ColumnOutcome {
  /** Under another key when they were read. */
  outdated: number;
  /** The others had been written or removed in the meantime. */
  rewritten: number;
  /** One sentence for each record, without any value. */
  unreadable: string[];
}

async function reencryptColumn(
  queries: EncryptedColumnQueries,
  cipher: SecretCipher,
  column: EncryptedColumn,
): Promise<ColumnOutcome> {
  const outcome: ColumnOutcome = { outdated: 0, rewritten: 0, unreadable: [] };
  for await (const row of queries.all()) {
    if (!cipher.isOutdated(row.record)) {
      continue;
    }
    outcome.outdated += 1;
    try {
      const binding = column.binding(row.key);
      const fresh = cipher.encrypt(cipher.decrypt(row.record, binding), binding);
      outcome.rewritten += (await queries.replace(row, fresh)) ? 1 : 0;
    } catch (error) {
      if (!(error instanceof SecretDecryptionError)) {
        throw error;
      }
      const place = `${column.table}.${column.column} of ${queries.keyValues(row.key).join(', ')}`;
      outcome.unreadable.push(`${place}: ${error.message}`);
    }
  }
  return outcome;
}
