/** Of rows that a list reads at once, unless the first one alone has more. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;

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
