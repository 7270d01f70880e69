import type { ClientBase, Pool, QueryResultRow } from 'pg';
import {
  type DataSource,
  type EntityManager,
  QueryFailedError,
  type AfterQueryEvent,
  type EntitySubscriberInterface,
  EventSubscriber,
} from 'typeorm';
import { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { SpanKind, trace } from '@opentelemetry/api';
import { traced, errorType, failSpan, type SpanStart, tracer } from '@slipway/common/spans.js';

/** Goes into the `extra` of a data source whose next statement may run on another connection. */
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

const MAX_SEARCHED = 8_000;
const OPERATION = /^\s*([a-z]+)/i;
const TABLE = /\b(?:FROM|INTO|UPDATE)\s+(?:ONLY\s+)?"?([a-z_][a-z0-9_]*)"?/i;

/** Adds the statements of TypeORM to traces; named statements add themselves. */
@EventSubscriber()
export class StatementSpans implements EntitySubscriberInterface {
  afterQuery({ query, success, executionTime, error }: AfterQueryEvent): void {
    if (trace.getActiveSpan() === undefined) {
      return;
    }
    const { name, ...options } = statementSpan(statementName(query));
    const endedAt = Date.now();
    const span = tracer().startSpan(name, { ...options, startTime: endedAt - (executionTime ?? 0) });
    if (!success) {
      failSpan(span, errorType(error));
    }
    span.end(endedAt);
  }
}

/** The name in a trace, such as `SELECT sandboxes`, without the statement's text. */
export function statementName(query: string): string {
  const operation = OPERATION.exec(query)?.[1]?.toUpperCase() ?? 'statement';
  const table = TABLE.exec(query.slice(0, MAX_SEARCHED))?.[1];
  return table === undefined ? operation : `${operation} ${table}`;
}

function statementSpan(name: string): SpanStart {
  return {
    name,
    kind: SpanKind.CLIENT,
    attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name },
  };
}
