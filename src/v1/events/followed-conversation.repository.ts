import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, type EntityManager, In, Repository } from 'typeorm';
import {
  type ConversationFailure,
  type ConversationStatus,
  hasFailed,
  type MetricsSnapshot,
} from '@slipway/agent-protocol/conversation-api.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../config/app-config.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import {
  budgetEvent,
  type ConversationReport,
  type Spending,
  statusEvent,
  type WebhookEvent,
} from '../../outbound-webhooks/webhook-event.js';
import { WebhookDeliveryRepository } from '../../outbound-webhooks/webhook-delivery.repository.js';
import { ModelUsageRepository, type Spender } from '../../usage/model-usage.repository.js';
import { FollowedConversation } from './followed-conversation.entity.js';
import type { ObservedState } from './store/observed-state.js';

/** Payload: the id of a conversation. */
export const OPENED_CHANNEL = 'conversation_opened';

/** Payload: the id of a conversation. */
export const REMOVED_CHANNEL = 'conversation_removed';

const OPEN = `
  INSERT INTO followed_conversations (id, user_id, sandbox_id) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO NOTHING`;

const REMOVE = 'DELETE FROM followed_conversations WHERE id = $1';

/** USD. A sandbox may report anything. */
const MAX_COST = 1_000_000;

/**
 * Members that were not observed keep their value, and so does a cost that is none; an unchanged row is not written. What
 * waits for the agent is read when it runs.
 */
const UPDATE_STATE = `
  UPDATE followed_conversations f
  SET execution_status = coalesce($2, f.execution_status),
      unread_messages = CASE WHEN $9 THEN 0 ELSE f.unread_messages END,
      unread_bytes = CASE WHEN $9 THEN 0 ELSE f.unread_bytes END,
      metrics = coalesce(old.given, f.metrics),
      title = coalesce($4, f.title),
      result = coalesce($5::jsonb, f.result),
      error = CASE WHEN $6 THEN $7::jsonb ELSE f.error END,
      updated_at = now()
  FROM (
    SELECT id, execution_status, metrics, title, result, error, unread_messages, $3::jsonb || jsonb_build_object('accumulated_cost',
        CASE WHEN ($3::jsonb ->> 'accumulated_cost')::float8
          BETWEEN coalesce((metrics ->> 'accumulated_cost')::float8, 0) AND ${MAX_COST}
        THEN $3::jsonb -> 'accumulated_cost' ELSE coalesce(metrics -> 'accumulated_cost', '0') END) AS given
    FROM followed_conversations
    WHERE id = $1 AND ($8::text IS NULL OR updated_at::text = $8)
    FOR UPDATE) AS old
  WHERE f.id = old.id
    AND (coalesce($2, old.execution_status) IS DISTINCT FROM old.execution_status
      OR coalesce(old.given, old.metrics) IS DISTINCT FROM old.metrics
      OR coalesce($4, old.title) IS DISTINCT FROM old.title
      OR coalesce($5::jsonb, old.result) IS DISTINCT FROM old.result
      OR ($6 AND $7::jsonb IS DISTINCT FROM old.error)
      OR ($9 AND old.unread_messages > 0))
  RETURNING f.user_id, f.sandbox_id, f.execution_status IS DISTINCT FROM old.execution_status AS status_changed,
    f.metrics IS DISTINCT FROM old.metrics AS metrics_changed,
    f.title IS DISTINCT FROM old.title AS title_changed, f.error, f.metrics, old.metrics AS metrics_before`;

interface StateChanges {
  user_id: string;
  sandbox_id: string;
  status_changed: boolean;
  metrics_changed: boolean;
  title_changed: boolean;
  error: ConversationFailure | null;
  metrics: MetricsSnapshot | null;
  metrics_before: MetricsSnapshot | null;
}

/** A larger result would be kept once for each delivery. */
const MAX_RESULT_BYTES = 65_536;

const REPORT = `
  SELECT CASE WHEN c.result_schema IS NOT NULL AND octet_length(f.result::text) <= ${MAX_RESULT_BYTES} THEN f.result END
      AS result,
    coalesce(c.title, f.title) AS title, coalesce(c.tags, '{}') AS tags, c.selected_repository AS repository,
    jsonb_build_object('number', c.pull_requests -> -1 -> 'number', 'url', c.pull_requests -> -1 -> 'url') AS pull_request
  FROM followed_conversations f LEFT JOIN app_conversations c ON c.id = f.id
  WHERE f.id = $1`;

interface ReportRow extends Pick<ConversationReport, 'result' | 'tags' | 'repository'> {
  title: string | null;
  pull_request: { number: number | null; url: string };
}

export interface LogProgress {
  eventCount: number;
  lastEventId: string | null;
  bytes: number;
  isFull: boolean;
  /** No event of the log was stored earlier than this. */
  since: Date;
  /** Changes with each event and state; absent when it was not read. */
  version?: string;
}

/** A log, and the time range of its events, so that other partitions need not be read. */
export interface StoredLog {
  id: string;
  eventCount: number;
  since: Date;
  until: Date;
  /** The status and error of an agent that gave up, else null. */
  failure: { execution_status: ConversationStatus; error: ConversationFailure } | null;
}

/** A database that was restored elsewhere may have had another clock. */
const SINCE = `opened_at - interval '1 day' AS since`;
const UNTIL = `greatest(opened_at, updated_at) + interval '1 day' AS until`;

const LOG_OF_USER = `
  SELECT id, event_count AS "eventCount", ${SINCE}, ${UNTIL}, CASE WHEN execution_status IN ('error', 'stuck') AND error IS NOT NULL
    THEN jsonb_build_object('execution_status', execution_status, 'error', error) END AS failure
  FROM followed_conversations WHERE id = $1 AND user_id = $2`;

const SPENDER = `
  SELECT f.id AS "conversationId", c.llm_model AS model, c.metadata ->> 'automation_id' AS "automationId"
  FROM followed_conversations f LEFT JOIN app_conversations c ON c.id = f.id WHERE f.id = $1`;

const PROGRESS = `
  SELECT event_count AS "eventCount", last_event_id AS "lastEventId", event_bytes::float8 AS bytes, is_full AS "isFull",
    ${SINCE}, updated_at::text AS version
  FROM followed_conversations WHERE id = $1`;

/** So few bytes are as good as none: a log is compared with its bounds each time that it has grown by so many. */
export const NO_ROOM = 65_536;

const STORED = `
  SELECT coalesce(sum(event_bytes), 0)::float8 AS "ofUser",
    coalesce(sum(event_bytes) FILTER (WHERE id = $2), 0)::float8 AS "ofConversation"
  FROM followed_conversations WHERE user_id = $1`;

/** Bounds the messages that a conversation takes between two runs without starting its agent. */
const MAX_UNREAD = 100;
const MAX_UNREAD_BYTES = 10_000_000;

/** Size of a log, or of a part of one. */
export interface LogSize {
  id: string;
  bytes: number;
}

const SUBTRACT_BYTES = `
  UPDATE followed_conversations f SET event_bytes = greatest(0, f.event_bytes - gone.bytes::bigint)
  FROM jsonb_to_recordset($1::jsonb) AS gone (id uuid, bytes float8) WHERE f.id = gone.id`;

const ADD_UNREAD = `
  UPDATE followed_conversations SET unread_messages = unread_messages + 1, unread_bytes = unread_bytes + $2
  WHERE id = $1 AND unread_messages < ${MAX_UNREAD} AND unread_bytes + $2 <= ${MAX_UNREAD_BYTES}`;

/** When something is to be kept, and there is as much as may be. */
function storageFull(detail: string): DomainError {
  return new DomainError('storage_full', detail);
}

export const USER_FULL = storageFull(
  'Your conversations hold as many events as they may (USER_EVENT_BYTES). Delete some of them (DELETE /api/v1/app-conversations/{id}), then try again.',
);

@Injectable()
export class FollowedConversationRepository {
  constructor(
    private readonly dataSource: DataSource,
    @InjectRepository(FollowedConversation) private readonly rows: Repository<FollowedConversation>,
    private readonly notifications: DatabaseNotifications,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly usage: ModelUsageRepository,
    private readonly config: AppConfig,
  ) {}

  /** Bytes of events that may still be stored; without a conversation, for a new one. */
  async room(
    userId: string,
    id: string | null = null,
    manager: Pick<EntityManager, 'query'> = this.dataSource,
  ): Promise<{ ofUser: number; ofConversation: number }> {
    const { userEventBytes, conversationEventBytes } = this.config.database;
    const [stored] = await manager.query<[{ ofUser: number; ofConversation: number }]>(STORED, [userId, id]);
    return {
      ofUser: (userEventBytes || Infinity) - stored.ofUser,
      ofConversation: (conversationEventBytes || Infinity) - stored.ofConversation,
    };
  }

  /** Before something makes more events. @throws DomainError storage_full */
  async requireRoom(userId: string, id: string | null, manager?: EntityManager): Promise<void> {
    const { ofUser, ofConversation } = await this.room(userId, id, manager);
    if (ofUser < NO_ROOM) {
      throw USER_FULL;
    }
    if (ofConversation < NO_ROOM) {
      throw storageFull(
        'This conversation holds as many events as it may (CONVERSATION_EVENT_BYTES); begin another one.',
      );
    }
  }

  /** Subtracts the bytes of events that are removed. */
  async subtractBytes(manager: EntityManager, sizes: readonly LogSize[]): Promise<void> {
    await manager.query(SUBTRACT_BYTES, [JSON.stringify(sizes)]);
  }

  /** Counts a message that the agent does not go on with. @throws DomainError storage_full for too many of them */
  async addUnread(id: string, content: object): Promise<void> {
    const bytes = Buffer.byteLength(JSON.stringify(content));
    const [, added] = await this.dataSource.query<[unknown, number]>(ADD_UNREAD, [id, bytes]);
    if (added === 0) {
      throw storageFull('As many messages wait for the agent as may: send the next one with `run: true`.');
    }
  }

  /** Opens a log in the caller's transaction; it is followed from the commit on. Repeatable. */
  async open(
    manager: EntityManager,
    conversation: { conversationId: string; userId: string; sandboxId: string },
  ): Promise<void> {
    const { conversationId, userId, sandboxId } = conversation;
    await manager.query(OPEN, [conversationId, userId, sandboxId]);
    await this.notifications.publish(manager, OPENED_CHANNEL, conversationId);
  }

  /** Removes a log with its events; its streams end at the commit. Repeatable. */
  async remove(manager: EntityManager, conversationId: string): Promise<void> {
    await manager.query(REMOVE, [conversationId]);
    await this.notifications.publish(manager, REMOVED_CHANNEL, conversationId);
  }

  async findLog(id: string, userId: string): Promise<StoredLog | null> {
    const [log = null] = await this.dataSource.query<StoredLog[]>(LOG_OF_USER, [id, userId]);
    return log;
  }

  /** Numbers of the last events; removed conversations are left out. */
  async eventCounts(ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.rows.find({
      select: { id: true, eventCount: true },
      where: { id: In([...ids]) },
    });
    return new Map(rows.map(({ id, eventCount }) => [id, eventCount]));
  }

  async progress(id: string): Promise<LogProgress | null> {
    const [progress = null] = await this.dataSource.query<LogProgress[]>(PROGRESS, [id]);
    return progress;
  }

  async sandboxId(id: string): Promise<string | null> {
    const row = await this.rows.findOne({ select: { id: true, sandboxId: true }, where: { id } });
    return row?.sandboxId ?? null;
  }

  async idsInSandbox(sandboxId: string): Promise<string[]> {
    return (await this.rows.find({ select: { id: true }, where: { sandboxId } })).map(({ id }) => id);
  }

  /**
   * Stores what proxies have counted where the agent server tells less, in USD.
   * @returns whether its agent works though its budget is spent
   */
  async raiseCost(manager: EntityManager, id: string, cost: number): Promise<boolean> {
    const row = await manager.findOneBy(FollowedConversation, { id });
    if (!row?.metrics) {
      return false;
    }
    const { accumulated_cost: known, max_budget_per_task: budget } = row.metrics;
    const accumulated = Math.min(Math.max(known, cost), MAX_COST);
    if (accumulated > known) {
      await this.change(manager, id, { metrics: { ...row.metrics, accumulated_cost: accumulated } });
    }
    return row.executionStatus === 'running' && budget !== null && accumulated >= budget;
  }

  /**
   * Stores an observed state, unless the log has changed since `before`, and reports a new status and a budget that is
   * nearly spent to webhook endpoints.
   * @returns the members that changed; null when none did
   */
  async updateState(
    id: string,
    state: ObservedState,
    manager?: EntityManager,
    before?: LogProgress,
  ): Promise<ObservedState | null> {
    if (Object.values(state).every((member) => member === undefined)) {
      return null;
    }
    if (manager === undefined) {
      return this.dataSource.transaction((own) => this.updateState(id, state, own, before));
    }
    const changes = await this.change(manager, id, state, before);
    if (changes?.metrics_changed === true && changes.metrics) {
      const { user_id: userId, metrics, metrics_before: known } = changes;
      const owner = { userId, ...(await this.spender(manager, id)) };
      await this.usage.addReported(manager, owner, { metrics, known });
    }
    return changes
      ? {
          ...(changes.status_changed && { executionStatus: state.executionStatus }),
          ...(changes.metrics_changed && changes.metrics && { metrics: changes.metrics }),
          ...(changes.title_changed && { title: state.title }),
        }
      : null;
  }

  /** Under what a conversation's calls of models are counted. */
  async spender(manager: EntityManager, id: string): Promise<Spender> {
    const [row] = await manager.query<Spender[]>(SPENDER, [id]);
    return row ?? { conversationId: id, automationId: null, model: null };
  }

  private async change(
    manager: EntityManager,
    id: string,
    { executionStatus, hasRun, metrics, title, result, error }: ObservedState,
    before?: LogProgress,
  ): Promise<StateChanges | null> {
    const [rows] = await manager.query<[StateChanges[], number]>(UPDATE_STATE, [
      id,
      executionStatus ?? null,
      metrics === undefined ? null : JSON.stringify(metrics),
      title ?? null,
      result === undefined ? null : JSON.stringify(result),
      error !== undefined,
      error ? JSON.stringify(error) : null,
      before?.version ?? null,
      hasRun === true || executionStatus === 'running',
    ]);
    const [changes] = rows;
    if (changes?.status_changed === true || changes?.metrics_changed === true) {
      await this.report(manager, id, changes, executionStatus);
    }
    return changes ?? null;
  }

  private async report(
    manager: EntityManager,
    id: string,
    changes: StateChanges,
    status: ConversationStatus | undefined,
  ): Promise<void> {
    const hasStatus = changes.status_changed && status !== undefined;
    const [before, after] = [spending(changes.metrics_before), spending(changes.metrics)];
    if (!hasStatus && budgetEvent(before, after, {}) === null) {
      return;
    }
    const [row] = await manager.query<ReportRow[]>(REPORT, [id]);
    const { number = null, url = '' } = row?.pull_request ?? {};
    const report: ConversationReport = {
      conversation_id: toHexId(id),
      sandbox_id: changes.sandbox_id,
      result: row?.result ?? null,
      error: hasStatus && hasFailed(status) ? changes.error : null,
      tags: row?.tags ?? {},
      cost: changes.metrics?.accumulated_cost ?? null,
      repository: row?.repository ?? null,
      pull_request: number === null ? null : { number, url },
    };
    const events: (WebhookEvent | null)[] = [
      budgetEvent(before, after, report),
      hasStatus ? statusEvent(status, report, row?.title ?? null) : null,
    ];
    for (const event of events) {
      if (event !== null) {
        await this.webhooks.publish(manager, changes.user_id, event);
      }
    }
  }
}

function spending(metrics: MetricsSnapshot | null): Spending {
  return { cost: metrics?.accumulated_cost ?? 0, budget: metrics?.max_budget_per_task ?? null };
}
