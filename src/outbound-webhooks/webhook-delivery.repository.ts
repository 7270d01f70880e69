import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  Column,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { mayAct } from '../auth/user.repository.js';
import { lockUser } from '../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import {
  formatTimeCursor,
  type Page,
  parsePageId,
  parseTimeCursor,
  toPage,
} from '@slipway/api/pagination/page.js';
import { EntityRows } from '@slipway/database/entity-rows.js';
import { type Lease, LeasedRows, type LeasedTable, lockFree } from '@slipway/database/leased-rows.js';
import { endAtBytes, type Measured } from '@slipway/database/page-bytes.js';
import { PushMessageRepository } from './push/push-message.repository.js';
import { type EndpointSecrets, WebhookEndpoint } from './webhook-endpoint.repository.js';
import { EVERY_EVENT, TEST_EVENT, type WebhookEvent } from './webhook-event.js';

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** One event for one endpoint. The rows are both the queue and its log. */
@Entity('webhook_deliveries')
@Index('webhook_deliveries_endpoint_idx', ['endpointId', 'createdAt', 'id'])
@Index('webhook_deliveries_status_idx', ['endpointId', 'status', 'createdAt', 'id'])
@Index('webhook_deliveries_due_idx', ['endpointId', 'nextAttemptAt'], { where: `status = 'pending'` })
@Index('webhook_deliveries_leased_idx', ['leasedUntil'], { where: 'leased_until IS NOT NULL' })
@Index('webhook_deliveries_created_at_idx', ['createdAt'])
export class WebhookDelivery {
  /** The same in all attempts, so that receivers recognize repetitions. */
  @PrimaryColumn('uuid') id: string;
  @Column('uuid') endpointId: string;

  @ManyToOne(() => WebhookEndpoint, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'endpoint_id' })
  endpoint?: WebhookEndpoint;

  @Column('text') eventType: string;
  @Column('json') data: Record<string, unknown>;
  @Column('text') status: DeliveryStatus;
  @Column('integer', { default: 0 }) attempts: number;
  @Column('timestamptz') createdAt: Date;

  @Column('text', { nullable: true }) leasedBy: string | null;
  @Column('timestamptz', { nullable: true }) leasedUntil: Date | null;

  /** When the next attempt is due; null when there is none. */
  @Column('timestamptz', { nullable: true }) nextAttemptAt: Date | null;
  @Column('timestamptz', { nullable: true }) lastAttemptAt: Date | null;

  /** HTTP status; null when there was no response. */
  @Column('integer', { nullable: true }) lastResponseStatus: number | null;
  @Column('text', { nullable: true }) lastError: string | null;
  @Column('integer', { nullable: true }) lastDurationMs: number | null;

  /** Older waiting deliveries that were removed for this one. */
  @Column('integer', { default: 0 }) dropped: number;
}

export const DELIVERIES_CHANNEL = 'webhook_deliveries';

/** Bounds tests of all endpoints of one user. */
export const TESTS_PER_MINUTE = 60;
const A_MINUTE_MS = 60_000;

/** Includes those that wait. */
export const MAX_DELIVERIES = 100;
/** Per endpoint and statement: earlier versions kept more. */
const TRIM_BATCH = 200;

/** Removes the oldest deliveries of a relation of endpoints. Skips locked rows, which go with the next delivery. */
function trim(endpoints: string, kept: number): string {
  return `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE id IN (
      SELECT old.id FROM ${endpoints} CROSS JOIN LATERAL (
        SELECT id FROM webhook_deliveries WHERE endpoint_id = ${endpoints}.id
        ORDER BY created_at DESC, id DESC OFFSET ${kept} LIMIT ${TRIM_BATCH}) old)
    ${lockFree()})
  RETURNING endpoint_id, status`;
}

/**
 * One statement, because every change waits for it and most users have no endpoint. Locks endpoints, and before their
 * deliveries: one that is being removed must not fail the change, nor wait for it.
 */
const PUBLISH = `
  WITH wanted AS (
    SELECT id FROM webhook_endpoints
    WHERE user_id = $1 AND enabled AND events && ARRAY[$2::text, '${EVERY_EVENT}']
    FOR KEY SHARE),
  trimmed AS (${trim('wanted', MAX_DELIVERIES - 1)}),
  added AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, created_at, next_attempt_at, dropped)
    SELECT gen_random_uuid(), id, $2::text, $3::json, 'pending', $4, $4,
      (SELECT count(*) FROM trimmed WHERE endpoint_id = wanted.id AND status = 'pending')
    FROM wanted
    RETURNING 1)
  SELECT pg_notify('${DELIVERIES_CHANNEL}', '') FROM added LIMIT 1`;

/** A user's tests are sent beside the others. */
const IS_BUSY = `
  SELECT FROM webhook_deliveries busy
  WHERE busy.endpoint_id = e.id AND busy.status = 'pending' AND busy.next_attempt_at > $2 AND busy.leased_until > $1
    AND busy.event_type <> '${TEST_EVENT}'`;

/** The next of each idle endpoint. Steps through the index of pending deliveries find the few with something to send. */
const HEADS = `
  WITH RECURSIVE waiting AS (
    (SELECT endpoint_id AS id FROM webhook_deliveries WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (SELECT endpoint_id FROM webhook_deliveries
            WHERE status = 'pending' AND endpoint_id > waiting.id ORDER BY endpoint_id LIMIT 1)
    FROM waiting WHERE waiting.id IS NOT NULL)
  SELECT due.id, e.user_id AS owner, due.next_attempt_at AS due_at
  FROM waiting JOIN webhook_endpoints e ON e.id = waiting.id
  CROSS JOIN LATERAL (
    SELECT id, next_attempt_at FROM webhook_deliveries
    WHERE endpoint_id = e.id AND status = 'pending'
    ORDER BY next_attempt_at LIMIT 1) due
  WHERE e.enabled AND ${mayAct('e.user_id')} AND NOT EXISTS (${IS_BUSY})`;

/** `next_attempt_at` is its `due_at`: the release before this one writes it, and knows no lease but that it lies ahead. */
const LEASED: LeasedTable = {
  table: 'webhook_deliveries',
  key: { column: 'id', type: 'uuid' },
  columns: { due_at: 'next_attempt_at' },
  owner: '(SELECT user_id FROM webhook_endpoints WHERE id = r.endpoint_id)',
  condition: "r.status = 'pending'",
  counted: `r.status = 'pending' AND EXISTS (
    SELECT FROM webhook_endpoints e WHERE e.id = r.endpoint_id AND e.enabled AND ${mayAct('e.user_id')})`,
  candidates: HEADS,
  returning: `r.event_type AS "eventType", r.data, r.created_at AS "createdAt", e.id AS "endpointId", e.user_id AS "userId",
    e.url, e.secret, e.previous_secret AS "previousSecret", e.previous_until AS "previousUntil"`,
  join: 'JOIN webhook_endpoints e ON e.id = r.endpoint_id',
  takenAt: 'last_attempt_at',
  channel: DELIVERIES_CHANNEL,
};

const EARLIER_TEST = `
  SELECT d.created_at FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id
  WHERE e.user_id = $1 AND d.event_type = '${TEST_EVENT}' AND d.created_at > $2
  ORDER BY d.created_at DESC OFFSET $3 LIMIT 1`;

const ADD_CLAIMED = `
  WITH tested AS (SELECT id FROM webhook_endpoints WHERE id = $2 FOR KEY SHARE),
  trimmed AS (${trim('tested', MAX_DELIVERIES - 1)})
  INSERT INTO webhook_deliveries
    (id, endpoint_id, event_type, data, status, attempts, created_at, last_attempt_at, next_attempt_at, leased_by, leased_until, dropped)
  SELECT $1, id, $3, $4, 'pending', 1, $5, $5, $6, $7, $6, (SELECT count(*) FROM trimmed WHERE status = 'pending') FROM tested
  RETURNING id`;

// Trims too: deliveries that were added at the same time have not seen each other. A test says nothing of how long an
// endpoint has failed. An endpoint that is locked is being changed, or removed with its deliveries: it is not waited for.
const SETTLE = `
  WITH settled AS (
    UPDATE webhook_deliveries
    SET status = $3, next_attempt_at = $4, last_response_status = $5, last_error = $6, last_duration_ms = $7,
      leased_by = NULL, leased_until = NULL
    WHERE id = $1 AND leased_by = $2 AND status = 'pending'
    RETURNING endpoint_id AS id, event_type, last_attempt_at),
  turned AS (
    SELECT e.id, CASE WHEN $3 <> 'delivered' THEN settled.last_attempt_at END AS failing_since
    FROM settled JOIN webhook_endpoints e ON e.id = settled.id
    WHERE (e.failing_since IS NULL) = ($3 <> 'delivered')
      AND ($3 = 'delivered' OR settled.event_type <> '${TEST_EVENT}')
    ${lockFree('e', 'NO KEY UPDATE')}),
  endpoint AS (
    UPDATE webhook_endpoints e SET failing_since = turned.failing_since FROM turned WHERE e.id = turned.id)
  ${trim('settled', MAX_DELIVERIES)}`;

const REDELIVER = `
  UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_attempt_at = $3, leased_by = NULL, leased_until = NULL
  WHERE id = $1 AND endpoint_id = $2`;

const HURRY = `
  WITH hurried AS (
    UPDATE webhook_deliveries SET next_attempt_at = $2
    WHERE endpoint_id = $1 AND status = 'pending' AND next_attempt_at > $3
    RETURNING 1)
  SELECT pg_notify('${DELIVERIES_CHANNEL}', '') FROM hurried LIMIT 1`;

// A row without an id: no such deliveries; no row: no such endpoint. Unnamed, since a plan for any filter would read
// all deliveries. The range of one endpoint and its column in the order force the index that begins with the endpoint
// (docs/adr/0046).
const PAGE = endAtBytes(
  `
  SELECT d.*
  FROM webhook_endpoints e LEFT JOIN LATERAL (
    SELECT id, endpoint_id, event_type, data, status, attempts, created_at, next_attempt_at, last_attempt_at, last_response_status,
      last_error, last_duration_ms, dropped,
      to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at
    FROM webhook_deliveries
    WHERE endpoint_id BETWEEN $1 AND $1 AND ($3::text IS NULL OR status = $3)
      AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5::uuid))
    ORDER BY endpoint_id DESC, created_at DESC, id DESC LIMIT $6) d ON true
  WHERE e.id = $1 AND e.user_id = $2
  ORDER BY d.created_at DESC, d.id DESC`,
  ['run.data::text'],
);

const PRUNE = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE created_at < $1 ORDER BY created_at LIMIT $2)`;

/** Leased, with what its attempt needs of its endpoint. */
export interface ClaimedDelivery
  extends Lease, Omit<EndpointSecrets, 'id'>, Pick<WebhookEndpoint, 'userId' | 'url'> {
  eventType: string;
  data: Record<string, unknown>;
  createdAt: Date;
  endpointId: string;
}

export interface AttemptResult {
  status: DeliveryStatus;
  nextAttemptAt: Date | null;
  responseStatus: number | null;
  error: string | null;
  durationMs: number;
}

@Injectable()
export class WebhookDeliveryRepository extends Repository<WebhookDelivery> {
  readonly leases: LeasedRows<ClaimedDelivery>;
  private readonly rows: EntityRows<WebhookDelivery>;

  constructor(
    dataSource: DataSource,
    private readonly clock: Clock,
    private readonly push: PushMessageRepository,
  ) {
    super(WebhookDelivery, dataSource.manager);
    this.leases = new LeasedRows(dataSource, clock, LEASED);
    this.rows = new EntityRows(this, 'd');
  }

  /** Queues an event for a user's endpoints and browsers; it is sent once the caller's transaction is committed. */
  async publish(manager: EntityManager, userId: string, event: WebhookEvent): Promise<void> {
    await manager.query(PUBLISH, [userId, event.type, JSON.stringify(event.data), this.now()]);
    await this.push.publish(manager, userId, event);
  }

  /**
   * Adds a delivery that only the caller may attempt before `until`, or returns seconds to wait after too many; null when
   * the endpoint is gone.
   */
  async addTest(endpoint: WebhookEndpoint, until: Date): Promise<ClaimedDelivery | number | null> {
    const now = this.now();
    const id = randomUUID();
    const data = { endpoint_id: endpoint.id };
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, endpoint.userId);
      const since = new Date(now.getTime() - A_MINUTE_MS);
      const limit = [endpoint.userId, since, TESTS_PER_MINUTE - 1];
      const [earlier] = await manager.query<{ created_at: Date }[]>(EARLIER_TEST, limit);
      if (earlier !== undefined) {
        return Math.max(1, Math.ceil((earlier.created_at.getTime() - since.getTime()) / 1000));
      }
      const leasedBy = `test/${id}`;
      const values = [id, endpoint.id, TEST_EVENT, JSON.stringify(data), now, until, leasedBy];
      const [added] = await manager.query<unknown[]>(ADD_CLAIMED, values);
      const lease = { id, leasedBy, attempts: 1 };
      return added === undefined
        ? null
        : Object.assign({}, endpoint, lease, {
            endpointId: endpoint.id,
            eventType: TEST_EVENT,
            data,
            createdAt: now,
          });
    });
  }

  /** Stores the result, unless another worker has made the next attempt meanwhile. */
  async settle({ id, leasedBy }: ClaimedDelivery, result: AttemptResult): Promise<void> {
    const { status, nextAttemptAt, responseStatus, error, durationMs } = result;
    await this.query(SETTLE, [id, leasedBy, status, nextAttemptAt, responseStatus, error, durationMs]);
  }

  /** Newest deliveries first; null for an unknown endpoint. @throws InvalidInputError for a foreign page id */
  async page(
    userId: string,
    endpointId: string,
    { status, pageId, limit }: { status: DeliveryStatus | null; pageId: string | undefined; limit: number },
  ): Promise<Page<WebhookDelivery> | null> {
    const list = `deliveries ${endpointId}`;
    const after = parsePageId(list, pageId, parseTimeCursor);
    const rows = await this.query<(Record<string, unknown> & Measured)[]>(PAGE, [
      endpointId,
      userId,
      status,
      after?.at ?? null,
      after?.id ?? null,
      limit + 1,
    ]);
    const { items, nextPageId } = toPage(
      list,
      rows.filter(({ id }) => id !== null),
      limit,
      ({ cursor_at: at, id }) => formatTimeCursor({ at: String(at), id: String(id) }),
      rows[0]?.found,
    );
    return rows.length === 0 ? null : { items: items.map((row) => this.rows.entity(row)), nextPageId };
  }

  async findOfEndpoint(endpointId: string, id: string): Promise<WebhookDelivery | null> {
    return this.findOneBy({ endpointId, id });
  }

  /** Makes a delivery due again after any result. */
  async redeliver(endpointId: string, id: string): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await manager.query(REDELIVER, [id, endpointId, this.now()]);
      await this.leases.wake(manager);
    });
  }

  /** Makes due what waits for longer than until `claimEnd`, so that an attempt under way is not made twice. */
  async hurry(endpointId: string, claimEnd: Date): Promise<void> {
    await this.query(HURRY, [endpointId, this.now(), claimEnd]);
  }

  /** Removes up to `limit` of the oldest deliveries from before a time, including those that never arrived. */
  async prune(before: Date, limit: number): Promise<number> {
    const [, removed] = await this.query<[unknown, number]>(PRUNE, [before, limit]);
    return removed;
  }

  private now(): Date {
    return new Date(this.clock.now());
  }
}
