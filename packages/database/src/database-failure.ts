/** `overloaded`: of memory, connections or locks. */
export type DatabaseFailure = 'unreachable' | 'overloaded' | 'disk_full';

const DISK_FULL = '53100';
/**
 * Out of memory, connections or locks, a deadlock, and a wait for a lock that the role's `lock_timeout` has ended
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
const OVERLOADED = /^(53...|40P01|55P03)$/;
/** Lost connections, cancelled statements, restarts, failovers, and logins that fail since the start. */
const AWAY_STATE = /^(08...|57014|57P0[1-5]|25006|28...|3D000)$/;
const AWAY_NETWORK =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|ENOTFOUND|EAI_AGAIN|EMFILE)$/;
const NETWORK_CALL = /^(connect|getaddrinfo|read|write)$/;
const AWAY_MESSAGE =
  /Connection terminated|Query read timeout|not queryable|timeout exceeded when trying to connect|Driver not Connected|Query runner already released/i;

/** What is wrong with PostgreSQL; a bare network error is its own, since other servers' are `UpstreamError`s. */
export function databaseFailure(error: unknown): DatabaseFailure | null {
  if (typeof error !== 'object' || error === null) {
    return null;
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
    severity?: string;
    syscall?: string;
    /** One for each address of a host that has several. */
    errors?: unknown[];
  };
  if (severity !== undefined && OVERLOADED.test(code)) {
    return code === DISK_FULL ? 'disk_full' : 'overloaded';
  }
  if (
    AWAY_MESSAGE.test(message) ||
    (severity !== undefined && AWAY_STATE.test(code)) ||
    (NETWORK_CALL.test(syscall) && AWAY_NETWORK.test(code))
  ) {
    return 'unreachable';
  }
  return Array.isArray(errors)
    ? (errors.map((each) => databaseFailure(each)).find((each) => each !== null) ?? null)
    : null;
}

/** Whether a failure comes from PostgreSQL: the same request can succeed later. */
export function isDatabaseAway(error: unknown): boolean {
  return databaseFailure(error) !== null;
}
