import { EventEmitter } from 'node:events';
import pg, { type Client, Pool } from 'pg';
import {
  type DataSource,
  type DataSourceOptions,
  DefaultNamingStrategy,
  type EntitySubscriberInterface,
  EventSubscriber,
  type Table,
  type TransactionStartEvent,
} from 'typeorm';
import {
  type DatabaseAddress,
  IDLE_TRANSACTION_TIMEOUT_MS,
  STATEMENT_TIMEOUT_MS,
} from './database-addresses.js';
import { UNNAMED } from './named-statement.js';

/** The driver's 10 s are too short: a new connection plans every statement anew. */
const IDLE_CONNECTION_MS = 300_000;

const READ_ONLY = '25006';

const LIMITS =
  `SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}; ` +
  `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_TRANSACTION_TIMEOUT_MS}`;

/** Behind a pooler, limits are given to each transaction: the session is not ours. */
@EventSubscriber()
class TransactionLimits implements EntitySubscriberInterface {
  async afterTransactionStart({ queryRunner }: TransactionStartEvent): Promise<void> {
    await queryRunner.query(LIMITS);
  }
}

/** Columns are in snake case; keys have the names that PostgreSQL gives them. */
class PostgresNames extends DefaultNamingStrategy {
  override columnName(property: string, given: string | undefined): string {
    return given ?? property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }

  override primaryKeyName(table: Table | string): string {
    return `${this.getTableName(table)}_pkey`;
  }

  override foreignKeyName(table: Table | string, columns: string[]): string {
    return `${this.getTableName(table)}_${columns.join('_')}_fkey`;
  }
}

/** Connections of the application's pool; `waiting` counts requests. */
export function poolUse({ driver }: DataSource): Record<'busy' | 'idle' | 'max' | 'waiting', number> {
  const pool: unknown = 'master' in driver ? driver.master : null;
  if (!(pool instanceof Pool)) {
    throw new TypeError('the data source has no pool of PostgreSQL connections');
  }
  const { totalCount, idleCount, waitingCount, options } = pool;
  return { busy: totalCount - idleCount, idle: idleCount, max: options.max, waiting: waitingCount };
}

/** A primary may become a replica without ending its connections, which would go on refusing changes. */
function leaveReplica(client: Client): void {
  // The driver's types lack it.
  const connection: unknown = Reflect.get(client, 'connection');
  if (connection instanceof EventEmitter) {
    connection.on('errorMessage', ({ code }: pg.DatabaseError) => {
      if (code === READ_ONLY) {
        void client.end();
      }
    });
  }
}

export interface PostgresOptions {
  poolSize: number;
  /** Names the connections in `pg_stat_activity`. */
  applicationName: string;
  /** Those of the table `schema_migrations`. */
  migrations?: NonNullable<DataSourceOptions['migrations']>;
}

/** Options of a data source that knows no entity yet. A string is an address without a pooler. */
export function postgresOptions(
  address: DatabaseAddress | string,
  { poolSize, applicationName, migrations = [] }: PostgresOptions,
): DataSourceOptions {
  const { url, pooled } = typeof address === 'string' ? { url: address, pooled: false } : address;
  return {
    type: 'postgres',
    // Unless it is given the driver, TypeORM reads a second copy from the packages, beside the one in the bundle.
    driver: pg,
    url,
    entities: [],
    subscribers: pooled ? [TransactionLimits] : [],
    migrations,
    migrationsTableName: 'schema_migrations',
    namingStrategy: new PostgresNames(),
    synchronize: false,
    poolSize,
    applicationName,
    connectTimeoutMS: 5_000,
    extra: {
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      onConnect: leaveReplica,
      ...(pooled
        ? UNNAMED
        : {
            statement_timeout: STATEMENT_TIMEOUT_MS,
            idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
          }),
    },
  };
}
