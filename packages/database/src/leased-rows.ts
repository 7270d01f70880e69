import { hash, randomUUID } from 'node:crypto';
import type { DataSource, EntityManager } from 'typeorm';
import type { Clock } from '@slipway/common/clock.js';
import { NamedStatement } from './named-statement.js';

/**
 * The end of a SELECT that locks its rows, and passes over those that another transaction has locked: they are waited for by
 * none, and found the next time.
 * @param rows alias of those to lock, where others are joined
 */
export function lockFree(rows?: string, lock: 'UPDATE' | 'NO KEY UPDATE' = 'UPDATE'): string {
  return `FOR ${lock} ${rows === undefined ? '' : `OF ${rows} `}SKIP LOCKED`;
}

/** Replicas compare their clocks with the database's, and may be a little apart: no work waits for that difference. */
const SKEW_MS = 250;

type LeaseColumn = 'due_at' | 'leased_by' | 'leased_until' | 'attempts';

/** Which rows of a table are work. Texts are SQL in which `r` is the row; `values` are its parameters from `$8` on. */
export interface LeasedTable {
  table: string;
  /** The primary key. */
  key: { column: string; type: 'uuid' | 'text' };
  /** Columns that an earlier release writes too, under the names that it knows. */
  columns?: Partial<Record<LeaseColumn, string>>;
  /** SQL expression for the owner of a row's work. */
  owner: string;
  /** True of rows that may be worked on once they are due. */
  condition: string;
  /** What of these metrics count, without parameters; by default all. */
  counted?: string;
  /** Selects `id`, `owner` and `due_at` of what may be taken now (`$1`; `$2`: due until) or later; by default all. */
  candidates?: string;
  values?: readonly unknown[];
  /** Columns of what was taken, beside those of `Lease`. */
  returning?: string;
  /** Joined to what was taken, for `returning`. */
  join?: string;
  /** What a renewal answers of a row, for `LeasedWorker.isWanted`. */
  renewing?: string;
  /** A column that is told when the row is taken. */
  takenAt?: string;
  /** Wakes the workers of this payload when something is due. */
  channel: string;
  payload?: string;
}

export interface Lease {
  id: string;
  /** Names this lease alone: the next one of the row has another name. */
  leasedBy: string;
  /** This one included. */
  attempts: number;
}

export interface Taking {
  limit: number;
  /** How many rows an owner may have under way in all replicas. */
  share: number;
  leaseMs: number;
  /** Not taken again: what this process still works on, whatever became of its lease. */
  held: readonly string[];
}

export interface Taken<Row> {
  rows: Row[];
  /** When the next row was due, or the next lease ends, before these were taken; null where there is none. */
  nextAt: Date | null;
}

export interface LeaseEnd {
  /** Null: there is nothing more to do, unless it has become due meanwhile. */
  dueAt: Date | null;
  /** Whether the attempt counts; by default it does. */
  counts?: boolean;
}

export interface LeaseBacklog {
  due: number;
  later: number;
  active: number;
  /** 0 when none is due. */
  oldestDueSeconds: number;
}

/**
 * Rows that are due, each of which one replica has for a while: `due_at`, `leased_by`, `leased_until`, `attempts`. Who takes a
 * row moves `due_at` to the end of the lease, so that a `due_at` that differs from it later says that the row has become due meanwhile.
 */
export class LeasedRows<Row extends Lease = Lease> {
  private readonly holder = randomUUID();
  private readonly column: Record<LeaseColumn, string>;
  /** Planning takes several times as long as running. */
  private readonly taking: NamedStatement<Row & { nextAt: Date | null }>;
  private readonly renewing: string;
  private readonly ending: string;
  private readonly counting: string;
  private taken = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
    readonly definition: LeasedTable,
  ) {
    this.column = {
      due_at: 'due_at',
      leased_by: 'leased_by',
      leased_until: 'leased_until',
      attempts: 'attempts',
      ...definition.columns,
    };
    const taking = this.takingText();
    const name = `lease_${definition.table}_${hash('sha256', taking).slice(0, 8)}`;
    this.taking = new NamedStatement(name, taking);
    this.renewing = this.renewingText();
    this.ending = this.endingText();
    this.counting = this.countingText();
  }

  /** Takes what is due: of the owners with the least under way first, then what has waited longest. */
  async take({ limit, share, leaseMs, held }: Taking): Promise<Taken<Row>> {
    const now = this.clock.now();
    this.taken += 1;
    const found = await this.taking.run(this.dataSource, [
      new Date(now),
      new Date(now + SKEW_MS),
      `${this.holder}/${this.taken}`,
      new Date(now + leaseMs),
      held,
      share,
      limit,
      ...(this.definition.values ?? []),
    ]);
    return { rows: found.filter(({ id }) => id !== null), nextAt: found[0]?.nextAt ?? null };
  }

  /** Returns the ids of leases that are still held, and now end later, with what `renewing` says of them. */
  async renew(leases: readonly Lease[], leaseMs: number): Promise<Map<string, unknown>> {
    const until = new Date(this.clock.now() + leaseMs);
    const ids = leases.map(({ id }) => id);
    const holders = leases.map(({ leasedBy }) => leasedBy);
    const values = [until, ids, holders];
    const rows = await this.dataSource.query<{ id: string; renewed: unknown }[]>(this.renewing, values);
    return new Map(rows.map(({ id, renewed }) => [id, renewed]));
  }

  /** Gives a row back; false when the lease was lost. */
  async end(
    { id, leasedBy }: Lease,
    { dueAt, counts = true }: LeaseEnd,
    manager: Pick<EntityManager, 'query'> = this.dataSource,
  ): Promise<boolean> {
    const isDue = dueAt !== null && dueAt.getTime() <= this.clock.now();
    const wakes = isDue ? (this.definition.payload ?? '') : null;
    const rows = await manager.query<unknown[]>(this.ending, [id, leasedBy, dueAt, counts ? 0 : 1, wakes]);
    return rows.length === 1;
  }

  /** Wakes workers once the transaction is committed, as a row has become due in it. */
  async wake(
    manager: Pick<EntityManager, 'query'> = this.dataSource,
    payload = this.definition.payload ?? '',
  ): Promise<void> {
    await manager.query('SELECT pg_notify($1, $2)', [this.definition.channel, payload]);
  }

  async backlog(): Promise<LeaseBacklog> {
    const [{ oldestDueSeconds, ...counts }] = await this.dataSource.query<[LeaseBacklog]>(this.counting, [
      new Date(this.clock.now()),
    ]);
    return { ...counts, oldestDueSeconds: Math.max(0, oldestDueSeconds) };
  }

  private takingText(): string {
    const { table, key, owner, condition, returning, join, takenAt } = this.definition;
    const { due_at: dueAt, leased_by: leasedBy, leased_until: leasedUntil, attempts } = this.column;
    const isFree = `${condition} AND r.${dueAt} <= $2 AND (r.${leasedUntil} IS NULL OR r.${leasedUntil} <= $1)`;
    const told = takenAt === undefined ? '' : `, ${takenAt} = $1`;
    const {
      candidates = `SELECT r.${key.column} AS id, ${owner} AS owner, r.${dueAt} AS due_at FROM ${table} r WHERE ${isFree}`,
    } = this.definition;
    const next =
      this.definition.candidates === undefined
        ? `SELECT r.${dueAt} FROM ${table} r WHERE ${condition} AND r.${dueAt} IS NOT NULL ORDER BY r.${dueAt} LIMIT 1`
        : 'SELECT min(due_at) FROM candidate';
    const joined = join === undefined ? 'leased r' : `(leased r ${join})`;
    // A subquery of the UPDATE might run again, and take more than the limit.
    return `
      WITH candidate AS (${candidates}),
      busy AS (
        SELECT owner, count(*) AS under_way, min(until) AS until
        FROM (SELECT ${owner} AS owner, r.${leasedUntil} AS until FROM ${table} r WHERE r.${leasedUntil} > $1 AND ${condition}) leased
        GROUP BY owner),
      place AS (
        SELECT c.id, c.due_at, coalesce(busy.under_way, 0) + row_number() OVER (PARTITION BY c.owner ORDER BY c.due_at) AS place
        FROM candidate c LEFT JOIN busy ON busy.owner = c.owner
        WHERE c.id <> ALL ($5::${key.type}[])),
      taken AS MATERIALIZED (
        SELECT r.${key.column} AS id FROM place JOIN ${table} r ON r.${key.column} = place.id
        WHERE place.place <= $6 AND ${isFree}
        ORDER BY place.place, place.due_at LIMIT $7
        ${lockFree('r')}),
      leased AS (
        UPDATE ${table} r
        SET ${leasedBy} = $3, ${leasedUntil} = $4, ${dueAt} = $4, ${attempts} = r.${attempts} + 1${told}
        FROM taken WHERE r.${key.column} = taken.id
        RETURNING r.*)
      SELECT next.at AS "nextAt", r.${key.column} AS id, r.${leasedBy} AS "leasedBy", r.${attempts} AS attempts
        ${returning ? `, ${returning}` : ''}
      FROM (SELECT least((${next}), (SELECT min(until) FROM busy)) AS at) AS next LEFT JOIN ${joined} ON true`;
  }

  /** A row that a transaction holds stays ours: no process takes it meanwhile, and the renewal of the others must not wait. */
  private renewingText(): string {
    const { table, key, renewing = 'NULL' } = this.definition;
    const { due_at: dueAt, leased_by: leasedBy, leased_until: leasedUntil } = this.column;
    return `
      WITH mine AS (
        SELECT r.${key.column} AS id, ${renewing} AS renewed
        FROM ${table} r JOIN unnest($2::${key.type}[], $3::text[]) AS held (id, leased_by)
          ON r.${key.column} = held.id AND r.${leasedBy} = held.leased_by),
      free AS (
        SELECT r.${key.column} AS id FROM ${table} r JOIN mine ON mine.id = r.${key.column}
        ${lockFree('r')}),
      renewed AS (
        UPDATE ${table} r
        SET ${leasedUntil} = $1, ${dueAt} = CASE WHEN r.${dueAt} = r.${leasedUntil} THEN $1 ELSE r.${dueAt} END
        FROM free WHERE r.${key.column} = free.id AND r.${leasedBy} = ANY ($3))
      SELECT id, renewed FROM mine`;
  }

  private endingText(): string {
    const { table, key, channel } = this.definition;
    const { due_at: dueAt, leased_by: leasedBy, leased_until: leasedUntil, attempts } = this.column;
    return `
      WITH ended AS (
        UPDATE ${table} r
        SET ${leasedBy} = NULL, ${leasedUntil} = NULL, ${attempts} = r.${attempts} - $4::int,
          ${dueAt} = CASE WHEN r.${dueAt} = r.${leasedUntil} THEN $3::timestamptz ELSE r.${dueAt} END
        WHERE r.${key.column} = $1 AND r.${leasedBy} = $2
        RETURNING 1)
      SELECT CASE WHEN $5::text IS NOT NULL THEN pg_notify('${channel}', $5) END FROM ended`;
  }

  private countingText(): string {
    const { table, condition, counted = condition } = this.definition;
    const due = `r.${this.column.due_at}`;
    const active = `coalesce(r.${this.column.leased_until} > $1, false)`;
    return `
      SELECT count(*) FILTER (WHERE ${due} <= $1 AND NOT ${active})::int AS due,
        count(*) FILTER (WHERE ${due} > $1 AND NOT ${active})::int AS later,
        count(*) FILTER (WHERE ${active})::int AS active,
        coalesce(extract(epoch FROM $1 - min(${due}) FILTER (WHERE NOT ${active})), 0)::float8 AS "oldestDueSeconds"
      FROM ${table} r WHERE ${counted}`;
  }
}
