import type { DataSource } from 'typeorm';
import type { EncryptedColumn } from '../common/crypto/secret-cipher.js';

const BATCH = 500;

/** No key column has this name. */
const RECORD = 'encrypted record';

export interface EncryptedRecord {
  record: string;
  key: Record<string, string>;
}

/** Identifiers come from the features' own descriptions, never from input. */
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
      if (last === undefined || rows.length < BATCH) {
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
