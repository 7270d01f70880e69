import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { AppConfig } from '../../../config/app-config.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { FollowedConversationRepository, type LogSize } from '../followed-conversation.repository.js';

/** Advisory lock for the one replica that changes partitions. The number is arbitrary. */
const PARTITION_LOCK = 7_240_815_563;

/** Gives up before PostgreSQL's deadlock check after one second could abort an append. */
const LOCK_TIMEOUT_MS = 500;

const TRY_LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS locked';

const PARTITIONS = `
  SELECT name, (regexp_match(bounds, $$TO \\('([^']+)'\\)$$))[1]::timestamptz AS until
  FROM (
    SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'conversation_events'::regclass) AS partition`;

/** Months with rows in the default partition cannot get a partition, and past months need none. */
const MISSING = `
  SELECT to_char(month, 'YYYY_MM') AS month, to_char(month, 'YYYY-MM-DD') AS begins,
    to_char(month + interval '1 month', 'YYYY-MM-DD') AS ends
  FROM generate_series(
    greatest(
      (SELECT max(until) FROM (${PARTITIONS}) AS partitions) AT TIME ZONE 'UTC',
      date_trunc('month', now() AT TIME ZONE 'UTC'),
      (SELECT date_trunc('month', max(stored_at) AT TIME ZONE 'UTC') + interval '1 month'
       FROM conversation_events_default)),
    (now() + make_interval(days => $1::int)) AT TIME ZONE 'UTC',
    interval '1 month') AS month
  ORDER BY month`;

const OUTDATED = `
  SELECT name FROM (${PARTITIONS}) AS partitions
  WHERE until <= now() - make_interval(days => $1::int)
  ORDER BY until`;

/** Leaves out the latest partitions: they may not be needed before the next month. */
const SECONDS_AHEAD = `
  SELECT coalesce(extract(epoch FROM max(until) - now()), 0)::float8 AS seconds FROM (${PARTITIONS}) AS partitions`;

/** Sizes of all logs in a partition that gets no more events. */
const sizesIn = (partition: string): string => `
  SELECT conversation_id AS id, sum(octet_length(body::text))::float8 AS bytes FROM ${partition} GROUP BY conversation_id`;

const PRUNE_DEFAULT = `
  DELETE FROM conversation_events_default WHERE (conversation_id, seq) IN (
    SELECT conversation_id, seq FROM conversation_events_default
    WHERE stored_at < now() - make_interval(days => $1::int) ORDER BY stored_at LIMIT $2)`;

interface Month {
  month: string;
  begins: string;
  ends: string;
}

/** Monthly partitions of `conversation_events`: only they can have the unique keys of events (docs/adr/0044). */
@Injectable()
export class EventPartitionRepository {
  constructor(
    private readonly dataSource: DataSource,
    private readonly conversations: FollowedConversationRepository,
  ) {}

  /**
   * Creates partitions for the next days, and returns their names. Events without a partition go into the default one.
   * @throws QueryFailedError when a long transaction holds the tables; the next attempt may succeed
   */
  async createUntil(days: number): Promise<string[]> {
    const missing = await this.dataSource.query<Month[]>(MISSING, [days]);
    if (missing.length === 0) {
      return [];
    }
    return (
      (await this.alone(async (manager) => {
        // Another replica may have created them before the lock was free.
        const months = await manager.query<Month[]>(MISSING, [days]);
        // Locked first, as in the statements of requests, to avoid deadlocks.
        await manager.query('LOCK TABLE followed_conversations IN EXCLUSIVE MODE');
        for (const month of months) {
          await this.create(manager, month);
        }
        return months.map(({ month }) => `conversation_events_${month}`);
      })) ?? []
    );
  }

  /**
   * Drops the oldest partition if all of its events are older than that; null when none was dropped.
   * @throws QueryFailedError as `createUntil` does
   */
  async dropOldest(days: number): Promise<string | null> {
    const [outdated] = await this.dataSource.query<{ name: string }[]>(OUTDATED, [days]);
    if (outdated === undefined) {
      return null;
    }
    // Read before the lock, as that takes a while.
    const sizes = await this.dataSource.query<LogSize[]>(
      sizesIn(this.dataSource.driver.escape(outdated.name)),
    );
    return await this.alone(async (manager) => {
      const [oldest] = await manager.query<{ name: string }[]>(OUTDATED, [days]);
      if (oldest?.name !== outdated.name) {
        return null;
      }
      await manager.query('LOCK TABLE followed_conversations, conversation_events IN ACCESS EXCLUSIVE MODE');
      await this.conversations.subtractBytes(manager, sizes);
      await manager.query(`DROP TABLE ${this.dataSource.driver.escape(oldest.name)}`);
      return oldest.name;
    });
  }

  /** Removes a batch of old events from the default partition, and returns their number. */
  async pruneDefault(days: number, limit: number): Promise<number> {
    const [, removed] = await this.dataSource.query<[unknown, number]>(PRUNE_DEFAULT, [days, limit]);
    return removed;
  }

  async secondsAhead(): Promise<number> {
    const [row] = await this.dataSource.query<{ seconds: number }[]>(SECONDS_AHEAD);
    return row?.seconds ?? 0;
  }

  private async create(manager: EntityManager, { month, begins, ends }: Month): Promise<void> {
    const name = `conversation_events_${month}`;
    await manager.query(
      `CREATE TABLE ${name} (LIKE conversation_events INCLUDING DEFAULTS INCLUDING COMPRESSION)`,
    );
    await manager.query(`ALTER TABLE ${name} ADD CONSTRAINT ${name}_pkey PRIMARY KEY (conversation_id, seq)`);
    await manager.query(`CREATE UNIQUE INDEX ${name}_event_id_key ON ${name} (conversation_id, event_id)`);
    // Unlike CREATE TABLE … PARTITION OF, ATTACH does not block other users of the table.
    await manager.query(`
      ALTER TABLE conversation_events ATTACH PARTITION ${name}
      FOR VALUES FROM ('${begins} 00:00:00+00') TO ('${ends} 00:00:00+00')`);
  }

  /** Session state would break poolers; DETACH CONCURRENTLY, which no transaction allows, needs it for a timeout. */
  private async alone<T>(work: (manager: EntityManager) => Promise<T>): Promise<T | null> {
    return await this.dataSource.transaction(async (manager) => {
      const [lock] = await manager.query<{ locked: boolean }[]>(TRY_LOCK, [PARTITION_LOCK]);
      if (lock?.locked !== true) {
        return null;
      }
      await manager.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
      return await work(manager);
    });
  }
}

const EVERY_MS = 3_600_000;
/** Enough to survive a time in which the database cannot be changed. */
const DAYS_AHEAD = 75;
const BATCH = 5_000;

/** Creates coming partitions, and drops those past `EVENT_RETENTION_DAYS`. Events are stored even if it fails. */
@Injectable()
export class EventRetentionWorker extends BackgroundLoop implements OnModuleInit {
  constructor(
    private readonly partitions: EventPartitionRepository,
    private readonly config: AppConfig,
    metrics: Metrics,
  ) {
    super(EVERY_MS, new Logger('Events'), 'failed to maintain event partitions', 'warn');
    metrics.addSamples({
      name: 'slipway_event_partitions_ahead_seconds',
      help: 'Time for which the database has partitions for new events; below 0 they go into the default one',
      scope: 'database',
      labels: [],
      read: async () => [{ labels: {}, value: await partitions.secondsAhead() }],
    });
  }

  /** Must run before anything is stored: a month with events in the default partition cannot get its own. */
  async onModuleInit(): Promise<void> {
    await this.now();
  }

  protected async work(): Promise<void> {
    for (const name of await this.partitions.createUntil(DAYS_AHEAD)) {
      this.logger.log('event partition created', { partition: name });
    }
    const { eventRetentionDays: days } = this.config.database;
    if (days > 0) {
      await this.removeOld(days);
    }
  }

  private async removeOld(days: number): Promise<void> {
    for (let dropped = await this.partitions.dropOldest(days); dropped !== null && !this.stopping;) {
      this.logger.log('event partition dropped', { partition: dropped, days });
      dropped = await this.partitions.dropOldest(days);
    }
    let removed = 0;
    for (let batch = BATCH; batch === BATCH && !this.stopping;) {
      batch = await this.partitions.pruneDefault(days, BATCH);
      removed += batch;
    }
    if (removed > 0) {
      this.logger.log('old events without a partition removed', { events: removed, days });
    }
  }
}
