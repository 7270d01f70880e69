/** Most bytes of rows that a list reads at once, unless the first one alone has more. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/** What a page has for each of its rows besides the large values that are measured. */
const OTHER_BYTES = 2048;

/** Of a page that is read by a statement of `endAtBytes`. */
export interface Measured {
  /** How many rows the page would have without the limit of bytes. */
  found: number;
}

/**
 * Ends a run of rows at `MAX_PAGE_BYTES`. Large values are read one after the other, and none is behind the end: a window
 * function would read all of the run, and write it to disk.
 *
 * @param run selects the rows in their order, with large values as they are stored (`body`, not `body::text`)
 * @param large SQL expressions of texts of a row of `run`, as large as what the list makes of them; null counts as empty
 * @param columns what of `run` is selected
 * @returns a statement for rows that are `Measured`
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
