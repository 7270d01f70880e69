import type { DataSource } from 'typeorm';

/** @param statement selects `value` (text) and `count` (int), one row for each value */
export async function countRows(dataSource: DataSource, statement: string): Promise<Map<string, number>> {
  const rows = await dataSource.query<{ value: string; count: number }[]>(statement);
  return new Map(rows.map(({ value, count }) => [value, count]));
}
