import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { within } from '@slipway/common/async.js';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';

/** When two replicas change a role at the same moment, one of them fails. */
const ROLE_LOCK = 7_240_815_558;
/** PostgreSQL delivers notifications within milliseconds. */
const NOTIFICATION_MS = 3_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Otherwise the driver cannot read dates, migrations fail, and changes that meet are refused. */
const UNUSABLE_SETTINGS = `
  SELECT name, setting, needed
  FROM pg_settings JOIN (VALUES ('DateStyle', 'ISO'), ('default_transaction_isolation', 'read committed'),
    ('standard_conforming_strings', 'on'), ('transaction_read_only', 'off')) AS needs (name, needed) USING (name)
  WHERE setting NOT LIKE needed || '%'`;
const UNKNOWN_AUTHORITY =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(GET|VERIFY)_.+)$/;

export const STATEMENT_TIMEOUT_MS = 15_000;
export const IDLE_TRANSACTION_TIMEOUT_MS = 30_000;

export interface DatabaseAddress {
  url: string;
  /** PgBouncer or alike, where no session state may stay: no startup parameter, named statement, or `SET`. */
  pooled: boolean;
}

/** How a service reaches its database; injected by this class. */
export class DatabaseAddresses {
  /** `direct` keeps its session, for migrations and notifications. */
  constructor(
    readonly main: DatabaseAddress,
    readonly direct: DatabaseAddress = main,
  ) {}

  static of(url: string): DatabaseAddresses {
    return new DatabaseAddresses({ url, pooled: false });
  }
}

export interface FoundDatabase {
  addresses: DatabaseAddresses;
  notices: readonly string[];
}

/**
 * Detects a pooler, which makes up the id of the process that serves a connection. Messages name the variables that services
 * read: `DATABASE_URL`, and `DATABASE_DIRECT_URL` for what a pooler cannot do.
 * @param applicationName of the connections, in `pg_stat_activity`
 * @throws ConfigError when the database cannot be reached or used, or the direct address is missing or not direct
 */
export async function findDatabase(
  url: string,
  directUrl: string | null,
  applicationName?: string,
): Promise<FoundDatabase> {
  const main = await connectToAddress(url, 'DATABASE_URL', applicationName);
  try {
    await checkSettings(main);
    const pooled = await isPooled(main);
    if (!pooled && directUrl === null) {
      return { addresses: DatabaseAddresses.of(url), notices: [] };
    }
    const direct = await connectToAddress(directUrl ?? url, 'DATABASE_DIRECT_URL', applicationName);
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

/** @throws ConfigError when the role, the database or the server sets what the service cannot work with */
async function checkSettings(client: Client): Promise<void> {
  const { rows } = await client.query<Record<'name' | 'setting' | 'needed', string>>(UNUSABLE_SETTINGS);
  const [found] = rows;
  if (found !== undefined) {
    throw new ConfigError(
      `DATABASE_URL: ${found.name} is "${found.setting}" there, and has to be "${found.needed}": ` +
        'name the primary server and no replica, or set it for the role (ALTER ROLE … SET …)',
    );
  }
}

async function isPooled(client: Client): Promise<boolean> {
  // The driver's types lack what the server announced.
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

/** Works only in the same database, at a connection that keeps its session. */
async function hears(listener: Client, sender: Client): Promise<boolean> {
  const channel = `direct_check_${randomBytes(8).toString('hex')}`;
  const arrived = Promise.withResolvers<true>();
  listener.on('notification', (notification) => {
    if (notification.channel === channel) {
      arrived.resolve(true);
    }
  });
  await listener.query(`LISTEN ${channel}`);
  try {
    await sender.query('SELECT pg_notify($1, $2)', [channel, '']);
    return (await within(NOTIFICATION_MS, arrived.promise)) ?? false;
  } finally {
    await listener.query(`UNLISTEN ${channel}`);
  }
}

/** Poolers pass no limits on, so the role gets them, in this database only. A limit that is already set stays. */
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

/** @throws ConfigError one line when the database cannot be reached */
async function connectToAddress(url: string, variable: string, applicationName?: string): Promise<Client> {
  const client = createClient(url, variable, applicationName);
  // A broken connection fails the waiting query, and needs no listener to be noticed.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    throw unreachable(variable, error);
  }
}

function createClient(url: string, variable: string, applicationName?: string): Client {
  try {
    return new Client({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: CONNECT_TIMEOUT_MS,
    });
  } catch (error) {
    // The fault is in the address, whose text is not repeated, or in a file of certificates that it names.
    const advice = URL.canParse(url)
      ? ''
      : '; write #, / and ? in user and password as %23, %2F and %3F, and name one host';
    throw new ConfigError(`${variable}: cannot be read: ${errorMessage(error)}${advice}`, { cause: error });
  }
}

export function unreachable(variable: string, error: unknown): ConfigError {
  const failure = connectionFailure(error);
  return new ConfigError(
    `${variable}: the database cannot be reached: ${failure}${adviceOn(failure, error)}`,
    {
      cause: error,
    },
  );
}

/** The driver verifies certificates with `sslmode=require` too, which other clients do not. */
function adviceOn(failure: string, error: unknown): string {
  if (UNKNOWN_AUTHORITY.test(errorCode(error) ?? '')) {
    return (
      '; name the file of the authority that your provider publishes (sslmode=verify-full&sslrootcert=FILE), ' +
      'or accept any certificate (sslmode=no-verify)'
    );
  }
  return failure.endsWith('no encryption') ? '; add ?sslmode=verify-full for TLS' : '';
}

/** The driver's messages name at most host, user and database. */
function connectionFailure(error: unknown): string {
  const { message = '', errors } = error as { message?: string; errors?: unknown[] };
  if (Array.isArray(errors) && errors.length > 0) {
    // A host with several addresses fails once for each, under an error without a message.
    return connectionFailure(errors[0]);
  }
  return message.split('\n', 1)[0] || String(error);
}
