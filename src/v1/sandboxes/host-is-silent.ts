/**
 * The condition of a query that a host has given no sign of life for `:seconds`, by the database's clock as the signs
 * are. One that was stopped has none from then on: whoever ends what it left behind must leave it time to come back.
 *
 * @param column names the host
 */
export function hostIsSilent(column: string): string {
  return `NOT EXISTS (SELECT 1 FROM sandbox_hosts host
    WHERE host.id = ${column} AND host.seen_at > now() - make_interval(secs => :seconds))`;
}
