import { Logger } from '@nestjs/common';
import { errorMessage } from '../../../common/errors/error-message.js';
import { AgentServerError, type AgentServerTarget } from '../../agent-servers/agent-server.http.js';
import { AgentServerWatch } from '../../agent-servers/agent-server.watch.js';
import type { LogSync } from './log-sync.js';

/** Between two reads of a log while its agent server announces news, and while it cannot. */
const WATCHED_POLL_MS = 15_000;
const UNWATCHED_POLL_MS = 2_000;
/** Pause between two reads of the state. */
const STATE_MS = 1_000;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

interface FollowerOptions {
  conversationId: string;
  sync: LogSync;
  /** The conversation's agent server; null while it does not run. */
  findTarget: () => Promise<AgentServerTarget | null>;
  /** The conversation was removed from the service: there is nothing more to follow. */
  onRemoved: () => void;
}

/**
 * Follows one conversation's log: reads it whenever the agent server's socket, a webhook or a timer says that there may
 * be something new. One read at a time; requests during a read lead to one more.
 */
export class ConversationFollower {
  private readonly logger = new Logger(ConversationFollower.name);
  private readonly stopped = new AbortController();
  private target: AgentServerTarget | null = null;
  private watch: AgentServerWatch | null = null;
  private watched = false;
  private syncRequested = false;
  private running: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;
  private stateIsDue = true;
  private stateAt = -Infinity;
  private failures = 0;

  constructor(private readonly options: FollowerOptions) {}

  /** Reads the log soon. Returns at once. */
  requestSync(): void {
    this.syncRequested = true;
    this.stateIsDue = true;
    if (!this.stopped.signal.aborted) {
      this.running ??= this.run().finally(() => {
        this.running = null;
        this.schedule();
      });
    }
  }

  /** The sandbox was started again: what is known about its agent server is out of date. */
  restart(): void {
    this.forgetTarget();
    this.requestSync();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    clearTimeout(this.timer);
    this.forgetTarget();
    await this.running;
  }

  private async run(): Promise<void> {
    clearTimeout(this.timer);
    try {
      while (this.syncRequested && !this.stopped.signal.aborted) {
        this.syncRequested = false;
        await this.readOnce();
      }
      this.failures = 0;
    } catch (error) {
      this.fail(error);
    }
  }

  private async readOnce(): Promise<void> {
    const { conversationId, sync, findTarget, onRemoved } = this.options;
    const { signal } = this.stopped;
    this.target ??= await findTarget();
    const { target } = this;
    if (target === null || signal.aborted) {
      return;
    }
    this.watch ??= this.openWatch(target);
    if ((await sync.syncEvents(target, conversationId, signal)) === 'removed') {
      this.stopped.abort();
      this.forgetTarget();
      onRemoved();
      return;
    }
    if (performance.now() - this.stateAt >= STATE_MS) {
      this.stateAt = performance.now();
      this.stateIsDue = false;
      if (!(await sync.syncState(target, conversationId, signal))) {
        this.stateIsDue = true;
      }
    }
  }

  /** The failure may mean that the agent server has moved, so its address is looked up again. */
  private fail(error: unknown): void {
    if (this.stopped.signal.aborted) {
      return;
    }
    this.failures += 1;
    this.syncRequested = true;
    this.stateAt = -Infinity;
    this.forgetTarget();
    // The agent server does not know a conversation before it is started there.
    const isUnknown = error instanceof AgentServerError && error.status === 404;
    if (this.failures === 1 && !isUnknown) {
      this.logger.warn('failed to read conversation log', {
        conversation_id: this.options.conversationId,
        error: errorMessage(error),
      });
    }
  }

  private schedule(): void {
    if (this.stopped.signal.aborted) {
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.requestSync(), this.pause());
    this.timer.unref();
  }

  private pause(): number {
    if (this.failures > 0) {
      return Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** (this.failures - 1));
    }
    if (this.syncRequested) {
      return 0;
    }
    const poll = this.watched ? WATCHED_POLL_MS : UNWATCHED_POLL_MS;
    return this.stateIsDue ? Math.max(0, STATE_MS - (performance.now() - this.stateAt)) : poll;
  }

  private openWatch(target: AgentServerTarget): AgentServerWatch {
    let openedAt = Infinity;
    const watch = new AgentServerWatch(target, this.options.conversationId, {
      opened: () => {
        openedAt = performance.now();
        this.watched = true;
        this.requestSync();
      },
      changed: () => this.requestSync(),
      closed: () => this.unwatch(watch, performance.now() - openedAt),
    });
    return watch;
  }

  /** After a socket that lasted, the log is read at once; one that closes right away is retried at the poll's pace. */
  private unwatch(watch: AgentServerWatch, openForMs: number): void {
    if (this.watch !== watch) {
      return;
    }
    this.watched = false;
    this.watch = null;
    if (openForMs > UNWATCHED_POLL_MS) {
      this.requestSync();
    } else if (this.running === null) {
      this.schedule();
    }
  }

  private forgetTarget(): void {
    this.target = null;
    this.watch?.close();
    this.watch = null;
    this.watched = false;
  }
}
