import type { DataSource } from 'typeorm';
import {
  type CipherKey,
  type EncryptedColumn,
  SecretCipher,
  SecretDecryptionError,
} from '../common/crypto/secret-cipher.js';
import { ConfigError } from '../config/config.error.js';
import { EncryptionKeyCheck } from '../database/encryption-key-check.js';
import { ServiceState } from '../database/service-state.entity.js';
import { PROVIDER_TOKEN_ENCRYPTED_COLUMNS } from '../git-providers/tokens/provider-token.entity.js';
import { MCP_CONFIG_ENCRYPTED_COLUMNS } from '../mcp-config/mcp-secrets.js';
import { SETTINGS_ENCRYPTED_COLUMNS } from '../settings/encrypted-columns.js';
import { START_TASK_ENCRYPTED_COLUMNS } from '../v1/app-conversations/start-task.repository.js';
import { SANDBOX_ENCRYPTED_COLUMNS } from '../v1/sandboxes/session-key.js';
import type { CliOutput } from './keys-commands.js';
import type { KeysSession } from './keys-session.js';

/** Every place in the database that holds encrypted records, except for the key check itself. */
const ENCRYPTED_COLUMNS: readonly EncryptedColumn[] = [
  ...SETTINGS_ENCRYPTED_COLUMNS,
  ...MCP_CONFIG_ENCRYPTED_COLUMNS,
  ...PROVIDER_TOKEN_ENCRYPTED_COLUMNS,
  ...SANDBOX_ENCRYPTED_COLUMNS,
  ...START_TASK_ENCRYPTED_COLUMNS,
];

const BATCH = 500;

/** What one walk over a column came to. */
interface ReencryptedColumn {
  /** Records that were under another key when they were read. */
  outdated: number;
  /** Of these: now under the first key. The others had been written or removed in the meantime. */
  rewritten: number;
  /** Why records could not be read; one sentence each, without any value. */
  unreadable: string[];
}

/** Walks a column by its table's primary key and writes outdated records again under the first key. */
async function reencryptColumn(
  dataSource: DataSource,
  cipher: SecretCipher,
  column: EncryptedColumn,
): Promise<ReencryptedColumn> {
  const sql = statements(dataSource, column);
  const outcome: ReencryptedColumn = { outdated: 0, rewritten: 0, unreadable: [] };
  let after: string[] | null = null;
  for (;;) {
    const rows: Record<string, string>[] =
      after === null ? await dataSource.query(sql.first) : await dataSource.query(sql.next, after);
    for (const { [RECORD]: record = '', ...key } of rows) {
      if (cipher.isOutdated(record)) {
        outcome.outdated += 1;
        await rewrite(record, key);
      }
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) {
      return outcome;
    }
    after = keyOf(last);
  }

  async function rewrite(record: string, key: Record<string, string>): Promise<void> {
    const binding = column.binding(key);
    let fresh: string;
    try {
      fresh = cipher.encrypt(cipher.decrypt(record, binding), binding);
    } catch (error) {
      if (!(error instanceof SecretDecryptionError)) {
        throw error;
      }
      outcome.unreadable.push(
        `${column.table}.${column.column} of ${keyOf(key).join(', ')}: ${error.message}`,
      );
      return;
    }
    // Only over the value that was read: what a service has written since is newer.
    const [, affected] = await dataSource.query<[unknown, number]>(sql.update, [
      fresh,
      record,
      ...keyOf(key),
    ]);
    outcome.rewritten += affected;
  }

  function keyOf(row: Record<string, string>): string[] {
    return column.keyColumns.map((name) => row[name] ?? '');
  }
}

/** No key column is called like this. */
const RECORD = 'encrypted record';

function statements(
  dataSource: DataSource,
  { table, column, keyColumns }: EncryptedColumn,
): { first: string; next: string; update: string } {
  const quote = (name: string): string => dataSource.driver.escape(name);
  const keys = keyColumns.map(quote);
  const placeholders = (from: number): string => keys.map((_, index) => `$${index + from}`).join(', ');
  const select = (where: string): string =>
    `SELECT ${keys.map((key) => `${key}::text`).join(', ')}, ${quote(column)} AS ${quote(RECORD)}
       FROM ${quote(table)} WHERE ${quote(column)} IS NOT NULL ${where}
      ORDER BY ${keys.map((key) => `${quote(table)}.${key}`).join(', ')} LIMIT ${BATCH}`;
  return {
    first: select(''),
    next: select(`AND (${keys.join(', ')}) > (${placeholders(1)})`),
    update: `UPDATE ${quote(table)} SET ${quote(column)} = $1
              WHERE ${quote(column)} = $2 AND (${keys.join(', ')}) = (${placeholders(3)})`,
  };
}

/** A service that keeps writing under another key must not keep this going for ever. */
const MOST_ROUNDS = 10;
const MOST_SHOWN = 20;

/**
 * Encrypts every stored secret with the first of `keys`, while services keep reading and writing: goes over all
 * columns until a whole round finds nothing under another key, then renews the key check, so that the service starts
 * without the other keys from then on.
 *
 * @throws ConfigError when the keys do not fit the data, records cannot be read, or a service still writes under
 * another key; what was done until then stays, and the old keys are still needed
 */
export async function reencrypt(
  { dataSource }: KeysSession,
  keys: readonly CipherKey[],
  output: CliOutput,
): Promise<void> {
  const cipher = new SecretCipher(keys);
  const check = new EncryptionKeyCheck(dataSource.getRepository(ServiceState), cipher);
  await check.onModuleInit();
  const rewritten = new Map<string, number>();
  for (let round = 1; ; round += 1) {
    const { outdated, unreadable } = await goOverAllColumns();
    if (unreadable.length > 0) {
      unreadable.slice(0, MOST_SHOWN).forEach((line) => output.note(line));
      throw new ConfigError(
        `ENCRYPTION_KEYS: ${unreadable.length} records cannot be read; keep all keys, and give the missing one too`,
      );
    }
    if (outdated === 0) {
      break;
    }
    if (round === MOST_ROUNDS) {
      throw new ConfigError(
        'ENCRYPTION_KEYS: a service still encrypts with another key; give every replica the new key first, then run this again',
      );
    }
  }
  await check.renew();
  for (const [place, count] of rewritten) {
    output.result(`${place}: ${count}`);
  }
  output.note(`everything is encrypted with the key "${cipher.currentKeyId}"; the other keys can be removed`);

  async function goOverAllColumns(): Promise<{ outdated: number; unreadable: string[] }> {
    let outdated = 0;
    const unreadable: string[] = [];
    for (const column of ENCRYPTED_COLUMNS) {
      const outcome = await reencryptColumn(dataSource, cipher, column);
      const place = `${column.table}.${column.column}`;
      rewritten.set(place, (rewritten.get(place) ?? 0) + outcome.rewritten);
      outdated += outcome.outdated;
      unreadable.push(...outcome.unreadable);
    }
    return { outdated, unreadable };
  }
}
