import type { ClientBase, Pool, QueryResultRow } from 'pg';
import { type DataSource, type EntityManager, QueryFailedError } from 'typeorm';
import { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { traced } from '../common/spans.js';
import { statementSpan } from './statement-spans.js';

/** For `extra` of a data source whose next statement may run on another connection. */
export const UNNAMED = { unnamed: true } as const;

/** PostgreSQL plans it once per connection (docs/adr/0006). A name belongs to one text. List columns, never `*`. */
export class NamedStatement<Row extends QueryResultRow> {
  constructor(
    readonly name: string,
    readonly text: string,
  ) {}

  /** Runs outside of any transaction. @throws QueryFailedError that holds none of the values */
  async run(dataSource: DataSource, values: readonly unknown[]): Promise<Row[]> {
    return this.on(poolOf(dataSource), isUnnamed(dataSource), values);
  }

  /** Runs in the manager's transaction. @throws QueryFailedError as `run` does */
  async within(
    { queryRunner, connection: dataSource }: EntityManager,
    values: readonly unknown[],
  ): Promise<Row[]> {
    if (!queryRunner?.isTransactionActive) {
      throw new Error(`${this.name} belongs in a transaction`);
    }
    const connection: ClientBase = await queryRunner.connect();
    return this.on(connection, isUnnamed(dataSource), values);
  }

  private async on(
    connection: Pick<ClientBase, 'query'>,
    unnamed: boolean,
    values: readonly unknown[],
  ): Promise<Row[]> {
    return traced(statementSpan(this.name), () => this.query(connection, unnamed, values));
  }

  private async query(
    connection: Pick<ClientBase, 'query'>,
    unnamed: boolean,
    values: readonly unknown[],
  ): Promise<Row[]> {
    try {
      const { rows } = await connection.query<Row>({
        ...(!unnamed && { name: this.name }),
        text: this.text,
        values: [...values],
      });
      return rows;
    } catch (error) {
      throw error instanceof Error ? new QueryFailedError(this.text, undefined, error) : error;
    }
  }
}

function isUnnamed({ options }: DataSource): boolean {
  const extra: unknown = options.extra;
  return typeof extra === 'object' && extra !== null && 'unnamed' in extra;
}

/** TypeORM does not expose its pool, and cannot name a statement. */
function poolOf({ driver }: DataSource): Pool {
  if (!(driver instanceof PostgresDriver)) {
    throw new Error('named statements need PostgreSQL');
  }
  const pool: Pool = driver.master;
  return pool;
}
