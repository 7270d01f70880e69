/** One line of JSON to standard error. Members never hold a secret, a text of a user or an address with a query. */
export function log(
  level: 'info' | 'warn' | 'error',
  message: string,
  members: Record<string, unknown> = {},
): void {
  const line = { time: new Date().toISOString(), level, message, ...members };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
