import type { ErrorCode } from './domain-error.js';

type DatabaseFailure = 'unreachable' | 'overloaded' | 'disk_full';

export const DATABASE_PROBLEMS: Readonly<
  Record<DatabaseFailure, { code: ErrorCode; detail: string; log: string; retryAfterSeconds: number }>
> = {
  unreachable: {
    code: 'unavailable',
    detail: 'The database cannot be reached at the moment; try again.',
    log: 'failed to reach database',
    retryAfterSeconds: 1,
  },
  overloaded: {
    code: 'unavailable',
    detail: 'The database is overloaded at the moment; try again.',
    log: 'failed to use database, which is overloaded',
    retryAfterSeconds: 2,
  },
  disk_full: {
    code: 'storage_full',
    detail:
      'The disk of the database is full: what is stored can be read, and nothing can be added. Whoever runs this service has to free space.',
    log: 'failed to write to database, whose disk is full',
    retryAfterSeconds: 30,
  },
};

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
