import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { OPENED_CHANNEL } from '../followed-conversation.repository.js';
import type { ConversationFollower } from './conversation-follower.js';
import {
  type ClaimedConversation,
  type ClaimFilter,
  FollowLeaseRepository,
} from './follow-lease.repository.js';
import { LogSync } from './log-sync.js';
import { SyncRequests } from './sync-requests.js';

const CLAIM_MS = 1_000;
const RENEW_MS = 3_000;

interface FollowedLog {
  sandboxId: string;
  follower: ConversationFollower;
  generation: number | null;
}

/** The lease of a process only saves work: each event is stored once whichever process reads it. */
@Injectable()
export class FollowersService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(FollowersService.name);
  private readonly followed = new Map<string, FollowedLog>();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly work = new Set<Promise<void>>();
  private stopping = false;

  constructor(
    private readonly leases: FollowLeaseRepository,
    private readonly sync: LogSync,
    private readonly running: RunningSandboxQueries,
    private readonly sandboxes: SandboxEvents,
    private readonly notifications: DatabaseNotifications,
    private readonly syncRequests: SyncRequests,
  ) {}

  onApplicationBootstrap(): void {
    this.syncRequests.listen(
      (conversationId) => this.followed.get(conversationId)?.follower.announce(),
      () => this.followed.forEach(({ follower }) => follower.requestSync()),
    );
    this.notifications.listen(OPENED_CHANNEL, (conversationId) => {
      this.inBackground(() => this.claim({ conversationId }));
    });
    this.sandboxes.on('running', (sandboxId) => this.inBackground(() => this.claim({ sandboxId })));
    this.sandboxes.on('stopped', (sandboxId) => this.inBackground(() => this.leave(sandboxId)));
    this.timers.push(
      setInterval(() => this.inBackground(() => this.claim()), CLAIM_MS).unref(),
      setInterval(() => this.inBackground(() => this.renew()), RENEW_MS).unref(),
    );
  }

  /** Counts of followed conversations, by the result of their last read. */
  counts(): { reading: number; failing: number } {
    const failing = [...this.followed.values()].filter(({ follower }) => follower.isFailing).length;
    return { reading: this.followed.size - failing, failing };
  }

  /** Releases all leases, so that another process begins at once. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.timers.forEach((timer) => clearInterval(timer));
    await Promise.all(this.work);
    await this.stop([...this.followed.keys()]).catch((error: unknown) => this.report(error));
  }

  private async claim(filter: ClaimFilter = {}): Promise<void> {
    const claims = await this.leases.claim(filter);
    if (claims.length === 0) {
      return;
    }
    // Imported late because it loads a WebSocket client.
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
        onRemoved: () => this.followed.delete(id),
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
          followed.follower.restart();
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
    this.logger.warn('failed to update followed conversations', { error: errorMessage(error) });
  }
}
