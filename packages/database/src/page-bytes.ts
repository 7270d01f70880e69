import type { FindOptionsWhere, Repository } from 'typeorm';
import { EntityRows } from './entity-rows.js';

/** Bytes of rows that a list reads at once, unless the first row alone is larger. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

const OTHER_BYTES = 2048;

export interface Measured {
  /** Rows of the page without the limit of bytes. */
  found: number;
}

/**
 * Ends a run of rows at `MAX_PAGE_BYTES`. Large values are read only up to the end; a window function would read them
 * all, and write them to disk.
 * @param run selects rows in order, with large values as stored (`body`, not `body::text`)
 * @param large SQL expressions as large as what the list makes of them
 */
export function endAtBytes(run: string, large: readonly string[], columns = 'run.*'): string {
  const size = large.map((text) => `coalesce(octet_length(${text}), 0)`).join(' + ');
  return `
    WITH RECURSIVE run AS MATERIALIZED (
      SELECT (row_number() OVER ())::int AS n, ordered.* FROM (${run}) AS ordered
    ), page (n, bytes) AS (
      SELECT 0, 0
      UNION ALL
      SELECT run.n, page.bytes + ${size} + ${OTHER_BYTES} FROM page JOIN run ON run.n = page.n + 1
      WHERE page.bytes <= ${MAX_PAGE_BYTES}
    )
    SELECT ${columns}, (SELECT max(n) FROM run) AS found FROM page JOIN run USING (n)
    WHERE n = 1 OR bytes <= ${MAX_PAGE_BYTES}
    ORDER BY n`;
}

/**
 * A page of a list that is read from a place on, newest first, and how many rows the whole list has. It ends at
 * `MAX_PAGE_BYTES`.
 * @param parts SQL for columns of which the list needs a part, by their names
 */
export async function newestPage<Row extends { id: string; createdAt: Date }>(
  repository: Repository<Row>,
  where: FindOptionsWhere<Row>,
  { limit, offset }: { limit: number; offset: number },
  parts: Readonly<Record<string, string>> = {},
): Promise<[Row[], number]> {
  const rows = new EntityRows(repository, 'entry');
  const query = repository.createQueryBuilder('entry').select([]).where(where).limit(limit).offset(offset);
  for (const { databaseName } of repository.metadata.columns) {
    query.addSelect(parts[databaseName] ?? `entry.${databaseName}`, databaseName);
  }
  const [run, values] = query
    .orderBy('entry.created_at', 'DESC')
    .addOrderBy('entry.id', 'DESC')
    .getQueryAndParameters();
  const found = await repository.query<Record<string, unknown>[]>(endAtBytes(run, ['run::text']), values);
  return [found.map((row) => rows.entity(row)), await repository.countBy(where)];
}
