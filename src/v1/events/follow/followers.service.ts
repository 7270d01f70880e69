import { randomUUID } from 'node:crypto';
import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../../database/named-statement.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { RunningSandboxes } from '../../sandboxes/sandbox.queries.js';
import { OPENED_CHANNEL, SYNC_REQUESTS_CHANNEL } from '../conversation-logs.js';
import type { ConversationFollower } from './conversation-follower.js';
import { LogSync } from './log-sync.js';

/** A process that dies is replaced after this. */
const LEASE = `interval '10 seconds'`;
/** Taken over with one statement; the next one takes the rest. */
const MOST_AT_ONCE = 200;

const CLAIM = `
  WITH due AS (
    SELECT f.id
    FROM sandboxes s JOIN followed_conversations f ON f.sandbox_id = s.id
    WHERE s.status = 'RUNNING' AND (f.follower_until IS NULL OR f.follower_until < now())
      AND ($2::uuid IS NULL OR f.id = $2) AND ($3::text IS NULL OR s.id = $3)
    ORDER BY f.id
    LIMIT ${MOST_AT_ONCE}
    FOR UPDATE OF f SKIP LOCKED)
  UPDATE followed_conversations f SET follower = $1, follower_until = now() + ${LEASE}
  FROM due WHERE f.id = due.id
  RETURNING f.id, f.sandbox_id`;

/** A row that is being written to right now waits for the next time: the lease outlasts several of them. */
const RENEW = `
  WITH mine AS (
    SELECT f.id, s.generation
    FROM followed_conversations f JOIN sandboxes s ON s.id = f.sandbox_id
    WHERE f.id = ANY ($2::uuid[]) AND f.follower = $1 AND s.status = 'RUNNING'),
  free AS (
    SELECT id FROM followed_conversations
    WHERE id IN (SELECT id FROM mine) AND follower = $1
    ORDER BY id
    FOR UPDATE SKIP LOCKED),
  renewed AS (
    UPDATE followed_conversations SET follower_until = now() + ${LEASE} WHERE id IN (SELECT id FROM free))
  SELECT id, generation FROM mine`;

const RELEASE = `
  UPDATE followed_conversations SET follower = NULL, follower_until = NULL
  WHERE id IN (
    SELECT id FROM followed_conversations
    WHERE id = ANY ($2::uuid[]) AND follower = $1
    ORDER BY id
    FOR UPDATE)`;

interface ClaimedConversation {
  id: string;
  sandboxId: string;
}

/** Which process follows which conversation. Times are the database's, so clocks need not agree. */
@Injectable()
export class FollowLeases {
  /** No other process, earlier or later, has it. */
  private readonly follower = randomUUID();
  private readonly renewal = new NamedStatement<{ id: string; generation: number }>('follow_renew', RENEW);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Takes over conversations of running sandboxes that nobody follows; of all, or of those that are named. */
  async claim(only: { conversationId?: string; sandboxId?: string } = {}): Promise<ClaimedConversation[]> {
    const [rows] = await this.dataSource.query<[{ id: string; sandbox_id: string }[], number]>(CLAIM, [
      this.follower,
      only.conversationId ?? null,
      only.sandboxId ?? null,
    ]);
    return rows.map(({ id, sandbox_id: sandboxId }) => ({ id, sandboxId }));
  }

  /**
   * Keeps conversations for a while longer.
   *
   * @returns those that are still to be followed here, with the generation of their sandbox
   */
  async renew(conversationIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.renewal.run(this.dataSource, [this.follower, conversationIds]);
    return new Map(rows.map(({ id, generation }) => [id, generation]));
  }

  async release(conversationIds: readonly string[]): Promise<void> {
    if (conversationIds.length > 0) {
      await this.dataSource.query(RELEASE, [this.follower, conversationIds]);
    }
  }
}

const SWEEP_MS = 1_000;
const RENEW_MS = 3_000;

interface Followed {
  sandboxId: string;
  follower: ConversationFollower;
  /** Of the sandbox, once it was seen. */
  generation: number | null;
}

/**
 * Follows the conversations of running sandboxes, each in one process of all. Which one is only a matter of economy:
 * events are stored once whoever reads them, so a lease that is held a moment too long does no harm.
 */
@Injectable()
export class FollowersService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(FollowersService.name);
  private readonly followed = new Map<string, Followed>();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly work = new Set<Promise<void>>();
  private stopping = false;

  constructor(
    private readonly leases: FollowLeases,
    private readonly sync: LogSync,
    private readonly running: RunningSandboxes,
    private readonly sandboxes: SandboxEvents,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onApplicationBootstrap(): void {
    this.notifications.listen(
      SYNC_REQUESTS_CHANNEL,
      (id) => this.followed.get(id)?.follower.requestSync(),
      () => this.followed.forEach(({ follower }) => follower.requestSync()),
    );
    this.notifications.listen(OPENED_CHANNEL, (conversationId) => {
      this.inBackground(() => this.claim({ conversationId }));
    });
    this.sandboxes.onRunning((sandboxId) => this.inBackground(() => this.claim({ sandboxId })));
    this.sandboxes.onStopped((sandboxId) => this.inBackground(() => this.leave(sandboxId)));
    this.timers.push(
      setInterval(() => this.inBackground(() => this.claim()), SWEEP_MS).unref(),
      setInterval(() => this.inBackground(() => this.renew()), RENEW_MS).unref(),
    );
  }

  /** Stops following, so that another process begins at once. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.timers.forEach((timer) => clearInterval(timer));
    await Promise.all(this.work);
    await this.stop([...this.followed.keys()]).catch((error: unknown) => this.report(error));
  }

  private async claim(only: { conversationId?: string; sandboxId?: string } = {}): Promise<void> {
    const claims = await this.leases.claim(only);
    if (claims.length === 0) {
      return;
    }
    // With the first conversation only: it brings a WebSocket client along.
    const { ConversationFollower: Follower } = await import('./conversation-follower.js');
    for (const claimed of claims) {
      this.follow(claimed, Follower);
    }
  }

  private follow({ id, sandboxId }: ClaimedConversation, Follower: typeof ConversationFollower): void {
    const known = this.followed.get(id);
    const follower =
      known?.follower ??
      new Follower({
        conversationId: id,
        sync: this.sync,
        findTarget: () => this.running.target(sandboxId),
        onGone: () => this.followed.delete(id),
      });
    this.followed.set(id, { sandboxId, follower, generation: known?.generation ?? null });
    follower.requestSync();
  }

  private async renew(): Promise<void> {
    const ids = [...this.followed.keys()];
    if (ids.length === 0) {
      return;
    }
    const kept = await this.leases.renew(ids);
    for (const [id, generation] of kept) {
      const followed = this.followed.get(id);
      if (followed && followed.generation !== generation) {
        if (followed.generation !== null) {
          followed.follower.renew();
        }
        followed.generation = generation;
      }
    }
    await this.stop(ids.filter((id) => !kept.has(id)));
  }

  private async leave(sandboxId: string): Promise<void> {
    await this.stop(
      [...this.followed].filter(([, followed]) => followed.sandboxId === sandboxId).map(([id]) => id),
    );
  }

  private async stop(conversationIds: readonly string[]): Promise<void> {
    const stopping = conversationIds.flatMap((id) => this.followed.get(id) ?? []);
    conversationIds.forEach((id) => this.followed.delete(id));
    await Promise.all(stopping.map(({ follower }) => follower.stop()));
    await this.leases.release(conversationIds);
  }

  private inBackground(task: () => Promise<void>): void {
    if (this.stopping) {
      return;
    }
    const work = task().catch((error: unknown) => this.report(error));
    this.work.add(work);
    void work.finally(() => this.work.delete(work));
  }

  private report(error: unknown): void {
    this.logger.warn('conversations could not be followed for a moment', { error: String(error) });
  }
}
