import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { lockFree } from '@slipway/database/leased-rows.js';
import { countRows } from '../../../observability/program-metrics.js';

/** Tells that a process follows some conversations no longer. */
export const RELEASED_CHANNEL = 'conversations_released';

/** How long a dead process keeps its conversations. */
const LEASE = `interval '10 seconds'`;
const MAX_BATCH = 200;

/** The inner limit keeps PostgreSQL from scanning all conversations ever made instead of those of running sandboxes. */
const CLAIM = `
  WITH due AS MATERIALIZED (
    SELECT f.id
    FROM sandboxes s CROSS JOIN LATERAL (
      SELECT id FROM followed_conversations
      WHERE sandbox_id = s.id AND (follower_until IS NULL OR follower_until < now()) AND ($2::uuid IS NULL OR id = $2)
      LIMIT ${MAX_BATCH}
      ${lockFree()}) f
    WHERE s.status = 'RUNNING'
      AND ($2::uuid IS NULL OR s.id = (SELECT sandbox_id FROM followed_conversations WHERE id = $2))
      AND ($3::text IS NULL OR s.id = $3)
    LIMIT ${MAX_BATCH})
  UPDATE followed_conversations f SET follower = $1, follower_until = now() + ${LEASE}
  FROM due WHERE f.id = due.id
  RETURNING f.id, f.sandbox_id AS "sandboxId"`;

/** Skips rows that a writer has locked: a lease outlasts several renewals. */
const RENEW = `
  WITH mine AS (
    SELECT f.id, s.generation
    FROM followed_conversations f JOIN sandboxes s ON s.id = f.sandbox_id
    WHERE f.id = ANY ($2::uuid[]) AND f.follower = $1 AND s.status = 'RUNNING'),
  free AS (
    SELECT id FROM followed_conversations
    WHERE id IN (SELECT id FROM mine) AND follower = $1
    ORDER BY id
    ${lockFree()}),
  renewed AS (
    UPDATE followed_conversations SET follower_until = now() + ${LEASE} WHERE id IN (SELECT id FROM free))
  SELECT id, generation FROM mine`;

const RELEASE = `
  WITH released AS (
    UPDATE followed_conversations SET follower = NULL, follower_until = NULL
    WHERE id IN (
      SELECT id FROM followed_conversations
      WHERE id = ANY ($2::uuid[]) AND follower = $1
      ORDER BY id
      FOR UPDATE)
    RETURNING 1)
  SELECT pg_notify('${RELEASED_CHANNEL}', '') FROM released LIMIT 1`;

/** `OFFSET 0` keeps PostgreSQL from scanning all conversations ever made instead of those of running sandboxes. */
const COUNT_RUNNING = `
  SELECT coalesce(f.execution_status, 'unknown') AS value, count(*)::int AS count
  FROM sandboxes s CROSS JOIN LATERAL (
    SELECT execution_status FROM followed_conversations WHERE sandbox_id = s.id OFFSET 0) f
  WHERE s.status = 'RUNNING'
  GROUP BY f.execution_status`;

const COUNT_UNFOLLOWED = `
  SELECT count(*)::int AS count
  FROM sandboxes s CROSS JOIN LATERAL (
    SELECT FROM followed_conversations
    WHERE sandbox_id = s.id AND (follower_until IS NULL OR follower_until < now()) OFFSET 0) f
  WHERE s.status = 'RUNNING'`;

export interface ClaimFilter {
  conversationId?: string;
  sandboxId?: string;
}

export interface ClaimedConversation {
  id: string;
  sandboxId: string;
}

/**
 * Which process follows which conversation of a running sandbox. Times are the database's, so clocks need not agree.
 * Every process runs these statements every few seconds, so they join the sandboxes.
 */
@Injectable()
export class LogLeaseRepository {
  /** Identifies this process; never reused. */
  private readonly follower = randomUUID();

  constructor(private readonly dataSource: DataSource) {}

  /** Takes over conversations of running sandboxes that no process follows. */
  async claim(filter: ClaimFilter = {}): Promise<ClaimedConversation[]> {
    const values = [this.follower, filter.conversationId ?? null, filter.sandboxId ?? null];
    const [claimed] = await this.dataSource.query<[ClaimedConversation[], number]>(CLAIM, values);
    return claimed;
  }

  /** Returns the conversations that this process still follows, with the generation of their sandbox. */
  async renew(conversationIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.dataSource.query<{ id: string; generation: number }[]>(RENEW, [
      this.follower,
      conversationIds,
    ]);
    return new Map(rows.map(({ id, generation }) => [id, generation]));
  }

  async release(conversationIds: readonly string[]): Promise<void> {
    if (conversationIds.length > 0) {
      await this.dataSource.query(RELEASE, [this.follower, conversationIds]);
    }
  }

  async countRunning(): Promise<Map<string, number>> {
    return countRows(this.dataSource, COUNT_RUNNING);
  }

  /** Number of conversations in running sandboxes that no process follows. */
  async countUnfollowed(): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT_UNFOLLOWED);
    return row?.count ?? 0;
  }
}
