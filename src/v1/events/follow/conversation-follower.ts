import { Logger } from '@nestjs/common';
import { AgentServerError, type AgentServerTarget } from '../../agent-servers/agent-server.http.js';
import { AgentServerWatch } from '../../agent-servers/agent-server.watch.js';
import type { LogSync } from './log-sync.js';

/** Between two looks at a log while its agent server tells of news, and while it cannot. */
const WATCHED_POLL_MS = 15_000;
const UNWATCHED_POLL_MS = 2_000;
/** The state is asked for no more often than this. */
const STATE_MS = 1_000;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;

export interface FollowerOptions {
  conversationId: string;
  sync: LogSync;
  /** Where the conversation's agent server is now; null while it runs nowhere. */
  findTarget: () => Promise<AgentServerTarget | null>;
  /** The conversation was removed here: there is nothing more to follow. */
  onGone: () => void;
}

/**
 * Follows one conversation's log: reads it whenever the agent server's socket, a webhook or a timer says that there may
 * be something new. One read at a time; what is said meanwhile leads to one more.
 */
export class ConversationFollower {
  private readonly logger = new Logger(ConversationFollower.name);
  private readonly stopped = new AbortController();
  private target: AgentServerTarget | null = null;
  private watch: AgentServerWatch | null = null;
  private watched = false;
  private poked = false;
  private running: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;
  private stateIsDue = true;
  private stateAt = -Infinity;
  private failures = 0;

  constructor(private readonly options: FollowerOptions) {}

  /** Reads the log soon. Returns at once. */
  requestSync(): void {
    this.poked = true;
    this.stateIsDue = true;
    if (!this.stopped.signal.aborted) {
      this.running ??= this.run().finally(() => {
        this.running = null;
        this.schedule();
      });
    }
  }

  /** The sandbox was started anew: what was known of its agent server is out of date. */
  renew(): void {
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
      while (this.poked && !this.stopped.signal.aborted) {
        this.poked = false;
        await this.readOnce();
      }
      this.failures = 0;
    } catch (error) {
      this.fail(error);
    }
  }

  private async readOnce(): Promise<void> {
    const { conversationId, sync, findTarget, onGone } = this.options;
    const { signal } = this.stopped;
    this.target ??= await findTarget();
    const { target } = this;
    if (target === null || signal.aborted) {
      return;
    }
    this.watch ??= this.openWatch(target);
    if ((await sync.events(target, conversationId, signal)) === 'gone') {
      this.stopped.abort();
      this.forgetTarget();
      onGone();
      return;
    }
    if (performance.now() - this.stateAt >= STATE_MS) {
      this.stateAt = performance.now();
      this.stateIsDue = false;
      if (!(await sync.state(target, conversationId, signal))) {
        this.stateIsDue = true;
      }
    }
  }

  /** What went wrong may have to do with where the agent server is, so that is asked again. */
  private fail(error: unknown): void {
    if (this.stopped.signal.aborted) {
      return;
    }
    this.failures += 1;
    this.poked = true;
    this.stateAt = -Infinity;
    this.forgetTarget();
    // Until it is told to the agent server, a conversation is unknown to it.
    const isUnknown = error instanceof AgentServerError && error.status === 404;
    if (this.failures === 1 && !isUnknown) {
      this.logger.warn('a log could not be read', {
        conversationId: this.options.conversationId,
        error: String(error),
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
      return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (this.failures - 1));
    }
    if (this.poked) {
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

  /** What came after the socket was cut is read at once; a socket that never lasts is tried at the slower pace. */
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
