import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { Clock } from '../common/clock.js';
import { formatTimeCursor, type Page, parseTimeCursor, toPage } from '../common/pagination/page.js';
import { type DeliveryStatus, WebhookDelivery } from './webhook-delivery.entity.js';
import type { WebhookEndpoint } from './webhook-endpoint.entity.js';
import { EVERY_EVENT, type WebhookEvent } from './webhook-event.js';

/** Notifies workers of deliveries. */
export const DELIVERIES_CHANNEL = 'webhook_deliveries';

/** One statement: whoever changes something waits for it, and most users have no endpoint. */
const PUBLISH = `
  WITH added AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, created_at, next_attempt_at)
    SELECT gen_random_uuid(), e.id, $2::text, $3::json, 'pending', $4, $4
    FROM webhook_endpoints e
    WHERE e.user_id = $1 AND e.enabled AND e.events && ARRAY[$2::text, '${EVERY_EVENT}']
    RETURNING 1)
  SELECT pg_notify('${DELIVERIES_CHANNEL}', '') FROM added LIMIT 1`;

/**
 * The longest due delivery of each endpoint that is not busy. Whoever claims one has it until its next attempt would be
 * due; when the process dies before that, another one makes that attempt. Endpoints with something to send are found by
 * steps through the index of pending deliveries, since most endpoints have nothing.
 */
const CLAIM = `
  WITH RECURSIVE waiting AS (
    (SELECT endpoint_id AS id FROM webhook_deliveries WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (SELECT endpoint_id FROM webhook_deliveries
            WHERE status = 'pending' AND endpoint_id > waiting.id ORDER BY endpoint_id LIMIT 1)
    FROM waiting WHERE waiting.id IS NOT NULL)
  UPDATE webhook_deliveries d
  SET attempts = d.attempts + 1, last_attempt_at = $1, next_attempt_at = $2
  FROM webhook_endpoints e
  WHERE e.id = d.endpoint_id AND d.id IN (
    SELECT due.id
    FROM waiting JOIN webhook_endpoints candidate ON candidate.id = waiting.id
    CROSS JOIN LATERAL (
      SELECT id FROM webhook_deliveries
      WHERE endpoint_id = candidate.id AND status = 'pending' AND next_attempt_at <= $1
      ORDER BY next_attempt_at LIMIT 1
      FOR UPDATE SKIP LOCKED) due
    WHERE candidate.enabled AND candidate.id <> ALL ($3::uuid[])
    LIMIT $4)
  RETURNING d.id, d.event_type, d.data, d.attempts, d.created_at, e.id AS endpoint_id, e.url, e.secret`;

const ADD_CLAIMED = `
  INSERT INTO webhook_deliveries
    (id, endpoint_id, event_type, data, status, attempts, created_at, last_attempt_at, next_attempt_at)
  VALUES ($1, $2, $3, $4, 'pending', 1, $5, $5, $6)`;

const SETTLE = `
  UPDATE webhook_deliveries
  SET status = $3, next_attempt_at = $4, last_response_status = $5, last_error = $6, last_duration_ms = $7
  WHERE id = $1 AND attempts = $2 AND status = 'pending'`;

/** Undoes a claim: the delivery is as it was before, and due. */
const RELEASE = `
  WITH released AS (
    UPDATE webhook_deliveries SET attempts = attempts - 1, next_attempt_at = $3
    WHERE id = $1 AND attempts = $2 AND status = 'pending'
    RETURNING 1)
  SELECT pg_notify('${DELIVERIES_CHANNEL}', '') FROM released`;

const REDELIVER = `
  UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_attempt_at = $3
  WHERE id = $1 AND endpoint_id = $2`;

const BACKLOG = `
  SELECT count(*) FILTER (WHERE next_attempt_at <= $1)::int AS due,
    count(*) FILTER (WHERE next_attempt_at > $1)::int AS later,
    extract(epoch FROM $1 - min(next_attempt_at))::float8 AS oldest_due_seconds
  FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.enabled
  WHERE d.status = 'pending'`;

/**
 * A row without an id: the endpoint has no deliveries of this kind; no row: the user has no such endpoint. Not named: a plan
 * for any filter would read all deliveries. A range of one endpoint, and its column in the order: only the index that
 * begins with the endpoint has that order, whatever part of all deliveries the planner expects of it (docs/adr/0050).
 */
const PAGE = `
  SELECT d.*
  FROM webhook_endpoints e LEFT JOIN LATERAL (
    SELECT id, event_type, data, status, attempts, created_at, next_attempt_at, last_attempt_at, last_response_status,
      last_error, last_duration_ms,
      to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at
    FROM webhook_deliveries
    WHERE endpoint_id BETWEEN $1 AND $1 AND ($3::text IS NULL OR status = $3)
      AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5::uuid))
    ORDER BY endpoint_id DESC, created_at DESC, id DESC LIMIT $6) d ON true
  WHERE e.id = $1 AND e.user_id = $2
  ORDER BY d.created_at DESC, d.id DESC`;

/** Whether nothing has arrived since the delivery was created. */
const NOTHING_SINCE = `
  SELECT NOT EXISTS (
    SELECT FROM webhook_deliveries newer
    WHERE newer.endpoint_id = d.endpoint_id AND newer.status = 'delivered' AND newer.last_attempt_at >= d.created_at
  ) AS nothing
  FROM webhook_deliveries d WHERE d.id = $1`;

const PRUNE = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE created_at < $1 ORDER BY created_at LIMIT $2)`;

/** A delivery that a worker has claimed, with the data of its endpoint. */
export interface ClaimedDelivery {
  id: string;
  eventType: string;
  data: Record<string, unknown>;
  /** This one included. */
  attempts: number;
  createdAt: Date;
  /** The encrypted secret of the endpoint. */
  endpoint: Pick<WebhookEndpoint, 'id' | 'url' | 'secret'>;
}

/** How an attempt ended. */
export interface AttemptResult {
  status: DeliveryStatus;
  /** Null: no further attempt. */
  nextAttemptAt: Date | null;
  /** Null: no response. */
  responseStatus: number | null;
  /** Null when it was delivered. */
  error: string | null;
  durationMs: number;
}

/** Counts of the deliveries that wait for enabled endpoints. */
export interface DeliveryBacklog {
  due: number;
  /** Their next attempt is not due yet. */
  later: number;
  /** 0 when none is due. */
  oldestDueSeconds: number;
}

interface ClaimedRow {
  id: string;
  event_type: string;
  data: Record<string, unknown>;
  attempts: number;
  created_at: Date;
  endpoint_id: string;
  url: string;
  secret: string;
}

/** A delivery as its log shows it. */
export type ListedDelivery = Omit<WebhookDelivery, 'endpointId' | 'endpoint'>;

interface ListedRow {
  id: string;
  event_type: string;
  data: Record<string, unknown>;
  status: DeliveryStatus;
  attempts: number;
  created_at: Date;
  next_attempt_at: Date | null;
  last_attempt_at: Date | null;
  last_response_status: number | null;
  last_error: string | null;
  last_duration_ms: number | null;
  /** `created_at` with microseconds. */
  cursor_at: string;
}

interface EmptyRow {
  id: null;
}

/** The `webhook_deliveries` table: the queue of deliveries, and their log. */
@Injectable()
export class WebhookDeliveryRepository extends Repository<WebhookDelivery> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly clock: Clock,
  ) {
    super(WebhookDelivery, dataSource.manager);
  }

  /** Queues an event for the endpoints of a user that want it; it is sent once the caller's transaction is committed. */
  async publish(manager: EntityManager, userId: string, { type, data }: WebhookEvent): Promise<void> {
    await manager.query(PUBLISH, [userId, type, JSON.stringify(data), this.now()]);
  }

  /**
   * Adds a delivery that the caller attempts at once.
   *
   * @param until from then on any worker may claim it
   */
  async addClaimed(
    endpoint: WebhookEndpoint,
    { type, data }: { type: string; data: Record<string, unknown> },
    until: Date,
  ): Promise<ClaimedDelivery> {
    const now = this.now();
    const id = randomUUID();
    await this.query(ADD_CLAIMED, [id, endpoint.id, type, JSON.stringify(data), now, until]);
    return { id, eventType: type, data, attempts: 1, createdAt: now, endpoint };
  }

  /**
   * Takes due deliveries, at most one of each endpoint.
   *
   * @param busy ids of endpoints to leave out
   * @param until from then on any worker may claim them again
   */
  async claim(busy: readonly string[], limit: number, until: Date): Promise<ClaimedDelivery[]> {
    const [rows] = await this.query<[ClaimedRow[], number]>(CLAIM, [this.now(), until, busy, limit]);
    return rows.map((row) => ({
      id: row.id,
      eventType: row.event_type,
      data: row.data,
      attempts: row.attempts,
      createdAt: row.created_at,
      endpoint: { id: row.endpoint_id, url: row.url, secret: row.secret },
    }));
  }

  /** Stores the result of an attempt, unless another worker has made the next one in the meantime. */
  async settle({ id, attempts }: ClaimedDelivery, result: AttemptResult): Promise<void> {
    const { status, nextAttemptAt, responseStatus, error, durationMs } = result;
    await this.query(SETTLE, [id, attempts, status, nextAttemptAt, responseStatus, error, durationMs]);
  }

  /** Releases the claim of an interrupted attempt, so that another process makes it at once. */
  async release({ id, attempts }: ClaimedDelivery): Promise<void> {
    await this.query(RELEASE, [id, attempts, this.now()]);
  }

  /** Whether nothing has arrived at the delivery's endpoint since the delivery was created. */
  async nothingArrivedSince(id: string): Promise<boolean> {
    const [row] = await this.query<{ nothing: boolean }[]>(NOTHING_SINCE, [id]);
    return row?.nothing ?? false;
  }

  /** Of all users. */
  async backlog(): Promise<DeliveryBacklog> {
    const [row] = await this.query<{ due: number; later: number; oldest_due_seconds: number | null }[]>(
      BACKLOG,
      [this.now()],
    );
    const { due = 0, later = 0, oldest_due_seconds: oldest = null } = row ?? {};
    return { due, later, oldestDueSeconds: Math.max(0, oldest ?? 0) };
  }

  /**
   * A page of the deliveries to an endpoint of a user, the newest first.
   *
   * @returns null when the user has no such endpoint
   */
  async page(
    userId: string,
    endpointId: string,
    { status, cursor, limit }: { status: DeliveryStatus | null; cursor: string | null; limit: number },
  ): Promise<Page<ListedDelivery> | null> {
    const after = parseTimeCursor(cursor);
    const rows = await this.query<(ListedRow | EmptyRow)[]>(PAGE, [
      endpointId,
      userId,
      status,
      after?.at ?? null,
      after?.id ?? null,
      limit + 1,
    ]);
    const { items, nextPageId } = toPage(
      rows.filter((row) => row.id !== null),
      limit,
      ({ cursor_at: at, id }) => formatTimeCursor({ at, id }),
    );
    return rows.length === 0 ? null : { items: items.map(toListedDelivery), nextPageId };
  }

  async findOfEndpoint(endpointId: string, id: string): Promise<WebhookDelivery | null> {
    return this.findOneBy({ endpointId, id });
  }

  /** Restarts a delivery, whatever its result was. */
  async redeliver(endpointId: string, id: string): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await manager.query(REDELIVER, [id, endpointId, this.now()]);
      await manager.query(`SELECT pg_notify('${DELIVERIES_CHANNEL}', '')`);
    });
  }

  /**
   * Removes deliveries that were created before a time, the oldest first, including those that never arrived.
   *
   * @returns how many were removed: at most `limit`
   */
  async prune(before: Date, limit: number): Promise<number> {
    const [, removed] = await this.query<[unknown, number]>(PRUNE, [before, limit]);
    return removed;
  }

  private now(): Date {
    return new Date(this.clock.now());
  }
}

function toListedDelivery(row: ListedRow): ListedDelivery {
  return {
    id: row.id,
    eventType: row.event_type,
    data: row.data,
    status: row.status,
    attempts: row.attempts,
    createdAt: row.created_at,
    nextAttemptAt: row.next_attempt_at,
    lastAttemptAt: row.last_attempt_at,
    lastResponseStatus: row.last_response_status,
    lastError: row.last_error,
    lastDurationMs: row.last_duration_ms,
  };
}
