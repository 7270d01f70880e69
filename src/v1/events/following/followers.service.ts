import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { RunningSandboxes } from '../../sandboxes/running-sandboxes.js';
import { SandboxListeners } from '../../sandboxes/sandbox-listeners.js';
import { OPENED_CHANNEL, POKES_CHANNEL } from '../event-channels.js';
import type { ConversationFollower } from './conversation-follower.js';
import { type ClaimedConversation, FollowLeases } from './follow-leases.js';
import { LogSync } from './log-sync.js';

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
    private readonly sandboxes: SandboxListeners,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onApplicationBootstrap(): void {
    this.notifications.listen(
      POKES_CHANNEL,
      (id) => this.followed.get(id)?.follower.poke(),
      () => this.followed.forEach(({ follower }) => follower.poke()),
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
    follower.poke();
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
