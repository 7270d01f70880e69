/**
 * SQLSTATEs of a server that cannot serve anybody at the moment (https://www.postgresql.org/docs/current/errcodes-appendix.html):
 * lost connections, no resources left, a cancelled statement, a shutdown or start, read-only after a failover, and a
 * login that has failed since the start.
 */
const AWAY_STATE = /^(08...|53...|57014|57P0[1-5]|25006|28...|3D000)$/;
const AWAY_NETWORK =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|ENOTFOUND|EAI_AGAIN)$/;
const NETWORK_CALL = /^(connect|getaddrinfo|read|write)$/;
const AWAY_MESSAGE =
  /Connection terminated|Query read timeout|not queryable|timeout exceeded when trying to connect|Driver not Connected/i;

/**
 * Whether a failure comes from losing PostgreSQL rather than from the request. The driver's errors arrive unchanged when
 * no connection can be opened, and otherwise inside TypeORM's. A bare network error is the database's, since calls to
 * all other servers fail with an `UpstreamError`.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) {
    return false;
  }
  const {
    code = '',
    message = '',
    severity,
    syscall = '',
    errors = [],
  } = error as {
    code?: string;
    message?: string;
    /** Only errors that PostgreSQL itself sent have one. */
    severity?: string;
    syscall?: string;
    /** One for each address of a host that has several. */
    errors?: unknown[];
  };
  return (
    AWAY_MESSAGE.test(message) ||
    (severity !== undefined && AWAY_STATE.test(code)) ||
    (NETWORK_CALL.test(syscall) && AWAY_NETWORK.test(code)) ||
    (Array.isArray(errors) && errors.some((each) => isDatabaseAway(each)))
  );
}
