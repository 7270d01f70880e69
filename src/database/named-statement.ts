import type { ClientBase, Pool, QueryResultRow } from 'pg';
import { type DataSource, type EntityManager, QueryFailedError } from 'typeorm';
import { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';

/**
 * A statement on a hot path: PostgreSQL parses and plans it once per connection and knows it by its name from then
 * on (docs/adr/0006). The name must belong to this one text; columns are listed, never `*`.
 */
export class NamedStatement<Row extends QueryResultRow> {
  constructor(
    readonly name: string,
    readonly text: string,
  ) {}

  /**
   * Runs outside of any transaction, on any connection of the pool.
   *
   * @throws QueryFailedError like every statement that goes through TypeORM; it holds none of the values
   */
  async run(dataSource: DataSource, values: readonly unknown[]): Promise<Row[]> {
    return this.on(poolOf(dataSource), values);
  }

  /**
   * Runs in the transaction of a manager, on its connection.
   *
   * @throws QueryFailedError as `run` does
   */
  async within({ queryRunner }: EntityManager, values: readonly unknown[]): Promise<Row[]> {
    if (!queryRunner?.isTransactionActive) {
      throw new Error(`${this.name} belongs in a transaction`);
    }
    // What TypeORM calls connecting is, in a transaction, handing out the connection that it has.
    const connection: ClientBase = await queryRunner.connect();
    return this.on(connection, values);
  }

  private async on(connection: Pick<ClientBase, 'query'>, values: readonly unknown[]): Promise<Row[]> {
    try {
      const { rows } = await connection.query<Row>({
        name: this.name,
        text: this.text,
        values: [...values],
      });
      return rows;
    } catch (error) {
      throw error instanceof Error ? new QueryFailedError(this.text, undefined, error) : error;
    }
  }
}

/** TypeORM keeps its pool to itself, and has no way to name a statement. */
function poolOf({ driver }: DataSource): Pool {
  if (!(driver instanceof PostgresDriver)) {
    throw new Error('named statements need PostgreSQL');
  }
  const pool: Pool = driver.master;
  return pool;
}
