import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { ConfigError } from '../config/config.error.js';

/** When two replicas change a role at the same moment, one of them fails. */
const ROLE_LOCK = 7_240_815_557;
/** How long to wait for a notification, which PostgreSQL delivers within milliseconds. */
const NOTIFICATION_MS = 3_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** How long a statement may take, and a transaction may be idle, before PostgreSQL ends it, in milliseconds. */
export const STATEMENT_TIMEOUT_MS = 15_000;
export const IDLE_TRANSACTION_TIMEOUT_MS = 30_000;

/** An address of the database. */
export interface DatabaseAddress {
  url: string;
  /**
   * Something stands in between that may hand connections of one client to another one (PgBouncer and alike). No state
   * of the session may be left behind there: no startup parameter, no named statement, no `SET` outside a transaction.
   */
  pooled: boolean;
}

/** How the service reaches its database; injected by this class. */
export class DatabaseAddresses {
  /**
   * @param main for requests
   * @param direct keeps its session: for migrations and notifications
   */
  constructor(
    readonly main: DatabaseAddress,
    readonly direct: DatabaseAddress = main,
  ) {}

  /** Of a database with nothing in between. */
  static of(url: string): DatabaseAddresses {
    return new DatabaseAddresses({ url, pooled: false });
  }
}

/** The addresses, and what an operator should know about them. */
export interface FoundDatabase {
  addresses: DatabaseAddresses;
  notices: readonly string[];
}

/**
 * Finds out whether a pooler stands before the database, and that there is an address without one. A PostgreSQL that is
 * connected to directly announces the id of the process that serves the connection; a pooler announces one that it has
 * made up, since that process changes.
 *
 * @param directUrl `DATABASE_DIRECT_URL`; null when it is not configured
 * @throws ConfigError when the database cannot be reached, or the direct address is missing or not direct
 */
export async function findDatabase(url: string, directUrl: string | null): Promise<FoundDatabase> {
  const main = await connectToAddress(url, 'DATABASE_URL');
  try {
    const pooled = await isPooled(main);
    if (!pooled && directUrl === null) {
      return { addresses: DatabaseAddresses.of(url), notices: [] };
    }
    const direct = await connectToAddress(directUrl ?? url, 'DATABASE_DIRECT_URL');
    try {
      await checkDirect(direct, main, directUrl !== null);
      const addresses = new DatabaseAddresses(
        { url, pooled },
        { url: directUrl ?? url, pooled: await isPooled(direct) },
      );
      return { addresses, notices: pooled ? await limitStatementsOfRole(main) : [] };
    } finally {
      await direct.end();
    }
  } finally {
    await main.end();
  }
}

async function isPooled(client: Client): Promise<boolean> {
  // The driver keeps what the server announced, and its types do not know.
  const announced: unknown = Reflect.get(client, 'processID');
  return announced !== (await servingProcess(client));
}

async function servingProcess(client: Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}

/** @throws ConfigError unless what is published through the main address arrives at the direct one */
async function checkDirect(direct: Client, main: Client, isConfigured: boolean): Promise<void> {
  const reason = (await sharesProcesses(direct, main))
    ? 'it leads to a pooler that does not keep sessions'
    : (await hears(direct, main))
      ? null
      : 'a notification that was sent through DATABASE_URL did not arrive there';
  if (reason === null) {
    return;
  }
  throw new ConfigError(
    isConfigured
      ? `DATABASE_DIRECT_URL: must lead to the database of DATABASE_URL without a pooler in between; ${reason}`
      : 'DATABASE_URL: leads to a connection pooler that does not keep sessions; ' +
          'set DATABASE_DIRECT_URL to an address of PostgreSQL itself, for migrations and notifications',
  );
}

/** Whether a transaction of one connection was given the process that had just served the other one. */
async function sharesProcesses(first: Client, second: Client): Promise<boolean> {
  const before = await servingProcess(first);
  await second.query('BEGIN');
  try {
    const taken = await servingProcess(second);
    return taken === before || (await servingProcess(first)) !== before;
  } finally {
    await second.query('ROLLBACK');
  }
}

/** Whether a notification arrives: only in the same database, at a connection that keeps its session. */
async function hears(listener: Client, sender: Client): Promise<boolean> {
  const channel = `slipway_check_${randomBytes(8).toString('hex')}`;
  const arrived = Promise.withResolvers<true>();
  listener.on('notification', (notification) => {
    if (notification.channel === channel) {
      arrived.resolve(true);
    }
  });
  const waiting = new AbortController();
  await listener.query(`LISTEN ${channel}`);
  try {
    await sender.query('SELECT pg_notify($1, $2)', [channel, '']);
    return await Promise.race([
      arrived.promise,
      delay(NOTIFICATION_MS, false, { signal: waiting.signal }).catch(() => false),
    ]);
  } finally {
    waiting.abort();
    await listener.query(`UNLISTEN ${channel}`);
  }
}

/**
 * A pooler takes no limits along, so statements outside of transactions get theirs from the role, in this database only.
 * Whoever has set a limit keeps it.
 */
async function limitStatementsOfRole(client: Client): Promise<string[]> {
  const limit = `${STATEMENT_TIMEOUT_MS / 1000}s`;
  const { rows } = await client.query<{ limited: boolean; role: string; database: string }>(
    `SELECT current_user AS role, current_database() AS database,
            current_setting('statement_timeout') <> '0' OR EXISTS (
              SELECT FROM pg_db_role_setting, unnest(setconfig) AS entry
              WHERE setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
                AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
                AND entry LIKE 'statement_timeout=%') AS limited`,
  );
  const [found] = rows;
  if (!found || found.limited) {
    return [];
  }
  const statement =
    `ALTER ROLE ${client.escapeIdentifier(found.role)} IN DATABASE ${client.escapeIdentifier(found.database)} ` +
    `SET statement_timeout = '${limit}'`;
  try {
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${ROLE_LOCK}); ${statement}; COMMIT`);
    return [`The pooler's connections to PostgreSQL end statements after ${limit} from now on: ${statement}`];
  } catch (error) {
    await client.query('ROLLBACK');
    return [
      `Nothing ends statements that take too long behind the pooler (${errorMessage(error)}); run as a superuser: ${statement}`,
    ];
  }
}

/**
 * Opens one connection to inspect an address.
 *
 * @param variable the variable that the address comes from
 * @throws ConfigError one line when the database cannot be reached
 */
async function connectToAddress(url: string, variable: string): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: 'slipway',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
  });
  // A connection that breaks fails the query that waits for it, and needs no listener to be noticed.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    throw unreachable(variable, error);
  }
}

/** The error of a start without its database: one line, never with the password. */
export function unreachable(variable: string, error: unknown): ConfigError {
  return new ConfigError(`${variable}: the database cannot be reached: ${connectionFailure(error)}`, {
    cause: error,
  });
}

/** The driver's messages name at most host, user and database. */
function connectionFailure(error: unknown): string {
  const { message = '', errors } = error as { message?: string; errors?: unknown[] };
  if (Array.isArray(errors) && errors.length > 0) {
    // A host with several addresses fails once for each, under an error without a message of its own.
    return connectionFailure(errors[0]);
  }
  return message.split('\n', 1)[0] || String(error);
}
