import type { DataSource } from 'typeorm';
import type { EncryptedColumn } from '../common/crypto/encrypted-column.js';
import type { SecretCipher } from '../common/crypto/secret-cipher.js';
import { SecretDecryptionError } from '../common/crypto/secret-decryption.error.js';

const BATCH = 500;

/** What one walk over a column came to. */
export interface ReencryptedColumn {
  /** Records that were under another key when they were read. */
  outdated: number;
  /** Of these: now under the first key. The others had been written or removed in the meantime. */
  rewritten: number;
  /** Why records could not be read; one sentence each, without any value. */
  unreadable: string[];
}

/** Walks a column by its table's primary key and writes outdated records again under the first key. */
export async function reencryptColumn(
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
