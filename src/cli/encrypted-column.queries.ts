import type { DataSource } from 'typeorm';
import type { EncryptedColumn } from '../common/crypto/secret-cipher.js';

const BATCH = 500;

/** Alias of the encrypted column; no key column has this name. */
const RECORD = 'encrypted record';

/** One encrypted value and the primary key of its row. */
export interface EncryptedRecord {
  record: string;
  key: Record<string, string>;
}

/** The records of one encrypted column, of whichever table. Identifiers come from the features' own descriptions. */
export class EncryptedColumnQueries {
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
        ORDER BY ${keys.map((key) => `${table}.${key}`).join(', ')} LIMIT ${BATCH}`;
    this.selectFirst = select('');
    this.selectNext = select(`AND (${keys.join(', ')}) > (${placeholders(1)})`);
    this.update = `UPDATE ${table} SET ${value} = $1
                    WHERE ${value} = $2 AND (${keys.join(', ')}) = (${placeholders(3)})`;
  }

  /** All records, in the order of the primary key, read in batches. */
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
      if (last === undefined || rows.length < BATCH) {
        return;
      }
      after = this.keyValues(last);
    }
  }

  /**
   * Replaces a record, unless a service has written another one since it was read.
   *
   * @returns whether it was replaced
   */
  async replace({ record, key }: EncryptedRecord, fresh: string): Promise<boolean> {
    const [, affected] = await this.dataSource.query<[unknown, number]>(this.update, [
      fresh,
      record,
      ...this.keyValues(key),
    ]);
    return affected === 1;
  }

  /** The primary key of a row, in the order of its columns. */
  keyValues(row: Record<string, string>): string[] {
    return this.column.keyColumns.map((name) => row[name] ?? '');
  }
}
