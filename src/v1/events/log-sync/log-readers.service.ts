import { Injectable, Logger } from '@nestjs/common';
import { jittered } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { OPENED_CHANNEL } from '../followed-conversation.repository.js';
import type { LogReader } from './log-reader.js';
import {
  type ClaimedConversation,
  type ClaimFilter,
  LogLeaseRepository,
  RELEASED_CHANNEL,
} from './log-lease.repository.js';
import { LogSync } from './log-sync.js';
import { SyncRequests } from './sync-requests.js';

const CLAIM_MS = 1_000;
const RENEW_MS = 3_000;
const FAILURE = 'failed to update followed conversations';

interface FollowedLog {
  sandboxId: string;
  reader: LogReader;
  generation: number | null;
}

/** The lease of a process only saves work: each event is stored once whichever process reads it. */
@Injectable()
export class LogReadersService extends BackgroundLoop {
  private readonly followed = new Map<string, FollowedLog>();
  private renewAt = -Infinity;

  constructor(
    private readonly leases: LogLeaseRepository,
    private readonly sync: LogSync,
    private readonly running: RunningSandboxQueries,
    private readonly sandboxes: SandboxEvents,
    private readonly notifications: DatabaseNotifications,
    private readonly syncRequests: SyncRequests,
    metrics: Metrics,
  ) {
    super(CLAIM_MS, new Logger(LogReadersService.name), FAILURE, 'warn');
    metrics.addGauge({
      name: 'slipway_event_followers',
      help: 'Conversations whose events this replica copies from agent servers, by how the last read went',
      label: 'state',
      read: async () => {
        const failing = [...this.followed.values()].filter(({ reader }) => reader.isFailing).length;
        return new Map([
          ['reading', this.followed.size - failing],
          ['failing', failing],
        ]);
      },
    });
    metrics.addSamples({
      name: 'slipway_conversations_unfollowed',
      help: 'Conversations in running sandboxes whose events no replica copies',
      scope: 'database',
      labels: [],
      read: async () => [{ labels: {}, value: await leases.countUnfollowed() }],
    });
  }

  override onApplicationBootstrap(): void {
    this.syncRequests.listen(
      (conversationId) => this.followed.get(conversationId)?.reader.announce(),
      () => this.followed.forEach(({ reader }) => reader.requestSync()),
    );
    const soon = (): void => this.loop.within(CLAIM_MS);
    this.notifications.listen(RELEASED_CHANNEL, soon, soon);
    this.notifications.listen(OPENED_CHANNEL, (conversationId) => {
      this.inBackground(() => this.claim({ conversationId }));
    });
    this.sandboxes.on('running', (sandboxId) => this.inBackground(() => this.claim({ sandboxId })));
    this.sandboxes.on('stopped', (sandboxId) => this.inBackground(() => this.leave(sandboxId)));
    this.loop.start();
  }

  /** Releases all leases, so that another process begins at once. */
  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    await this.stop([...this.followed.keys()]).catch((error: unknown) => this.report(error));
  }

  /** Without a conversation, only what a dead process has left can be found, once its leases end. */
  protected async work(): Promise<number> {
    if (performance.now() >= this.renewAt) {
      this.renewAt = performance.now() + RENEW_MS;
      await this.renew();
    }
    await this.claim();
    return jittered(this.followed.size === 0 ? RENEW_MS : CLAIM_MS);
  }

  private async claim(filter: ClaimFilter = {}): Promise<void> {
    const claims = await this.leases.claim(filter);
    if (claims.length === 0) {
      return;
    }
    // Imported late because it loads a WebSocket client.
    const { LogReader: Reader } = await import('./log-reader.js');
    for (const claimed of claims) {
      this.follow(claimed, Reader);
    }
  }

  private follow({ id, sandboxId }: ClaimedConversation, Reader: typeof LogReader): void {
    const known = this.followed.get(id);
    const reader =
      known?.reader ??
      new Reader({
        conversationId: id,
        sync: this.sync,
        findTarget: () => this.running.target(sandboxId),
        onRemoved: () => this.followed.delete(id),
      });
    this.followed.set(id, { sandboxId, reader, generation: known?.generation ?? null });
    reader.requestSync();
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
          followed.reader.restart();
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
    await Promise.all(stopping.map(({ reader }) => reader.stop()));
    await this.leases.release(conversationIds);
  }

  private inBackground(task: () => Promise<void>): void {
    if (!this.stopping) {
      this.beside(task().catch((error: unknown) => this.report(error)));
    }
  }

  private report(error: unknown): void {
    this.logger.warn(FAILURE, { error: errorMessage(error) });
  }
}
