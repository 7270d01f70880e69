/** SQLSTATE classes and Node error codes that mean "the database is away", not "the statement is wrong". */
const AWAY = /^(08...|57P0[123]|53300|ECONNREFUSED|ECONNRESET|ENOENT|ENOTFOUND|EPIPE|ETIMEDOUT)$/;
const AWAY_MESSAGE = /Connection terminated|timeout exceeded when trying to connect|Driver not Connected/i;

/** Whether a failure comes from losing PostgreSQL rather than from the request. */
export function isDatabaseAway(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) {
    return false;
  }
  const { name, code, message, driverError } = error as {
    name?: string;
    code?: string;
    message?: string;
    driverError?: unknown;
  };
  const fromDatabase =
    name === 'QueryFailedError' || driverError !== undefined || AWAY_MESSAGE.test(message ?? '');
  return (
    fromDatabase && (AWAY.test(code ?? '') || AWAY_MESSAGE.test(message ?? '') || isDatabaseAway(driverError))
  );
}
