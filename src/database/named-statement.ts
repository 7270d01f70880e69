import type { ClientBase, Pool, QueryResultRow } from 'pg';
import {
  type DataSource,
  type EntityManager,
  type ObjectLiteral,
  QueryFailedError,
  type Repository,
} from 'typeorm';
import { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';

/** An entity's rows in statements that TypeORM did not write: which columns to ask for, and what comes back. */
export class EntityRows<Entity extends ObjectLiteral> {
  /** All columns, for a SELECT or RETURNING. */
  readonly columns: string;

  /** @param table name that the statement knows the table by */
  constructor(
    private readonly repository: Repository<Entity>,
    table: string,
  ) {
    const names = repository.metadata.columns.map(({ databaseName }) => `${table}.${databaseName}`);
    this.columns = names.join(', ');
  }

  /** @throws Error for what is no property of a column */
  column(property: string): string {
    const column = this.repository.metadata.findColumnWithPropertyName(property);
    if (!column) {
      throw new Error(`${this.repository.metadata.name} has no column for ${property}`);
    }
    return column.databaseName;
  }

  /** The entity of a row that has all `columns`. */
  entity(row: Readonly<Record<string, unknown>>): Entity {
    const { metadata, manager } = this.repository;
    const entity = this.repository.create();
    for (const column of metadata.columns) {
      const value: unknown = manager.connection.driver.prepareHydratedValue(row[column.databaseName], column);
      column.setEntityValue(entity, value);
    }
    return entity;
  }
}

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
