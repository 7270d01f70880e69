import { Client } from 'pg';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { errorCode } from './error-code.js';

/** How to reach the embedded database. */
export interface EmbeddedConnection {
  /** Folder of its socket; clients of PostgreSQL take it for a host. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
}

/**
 * What came of trying to connect: a connection, a server that is not ready (or no longer), no server, or a server
 * without this database.
 */
export type Probe =
  | { state: 'connected'; client: Client }
  | { state: 'not ready'; error: unknown }
  | { state: 'absent' }
  | { state: 'no database' };

/** How connections that show a start's use of the server are called in `pg_stat_activity`. */
export const LEASE_NAME = 'slipway embedded database';

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Sorts the errors of a connection attempt.
 *
 * @returns null for an error that trying again does not cure
 */
export function classifyConnectError(error: unknown): 'not ready' | 'absent' | 'no database' | null {
  const code = errorCode(error);
  switch (code) {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return 'absent';
    case '3D000': // invalid_catalog_name
      return 'no database';
    case '57P01': // admin_shutdown
    case '57P02': // crash_shutdown
    case '57P03': // cannot_connect_now: starting up, recovering, shutting down
    case '53300': // too_many_connections
    case 'ECONNRESET':
    case 'EPIPE':
    case 'EAGAIN': // the socket's backlog is full
      return 'not ready';
    default:
      // pg gives these two no code.
      return error instanceof Error && /terminated|timeout/i.test(error.message) ? 'not ready' : null;
  }
}

/**
 * Tries once to connect. A connection that breaks later does not bring the process down.
 *
 * @throws EmbeddedPostgresError for an answer that does not change by waiting
 */
export async function probe(connection: EmbeddedConnection, database = connection.database): Promise<Probe> {
  const client = new Client({
    ...connection,
    database,
    ssl: false,
    application_name: LEASE_NAME,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // Without a listener a lost connection would be an uncaught exception; `stop` finds out by itself.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return { state: 'connected', client };
  } catch (error) {
    const state = classifyConnectError(error);
    if (state === null) {
      const code = errorCode(error);
      const reason = code?.startsWith('28')
        ? 'the password in DATA_DIR/postgres-password does not fit'
        : code;
      throw new EmbeddedPostgresError(
        `The embedded PostgreSQL refuses us: ${reason ?? 'unknown reason'}`,
        error,
      );
    }
    return state === 'not ready' ? { state, error } : { state };
  }
}
