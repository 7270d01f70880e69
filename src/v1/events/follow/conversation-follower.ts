import { Logger } from '@nestjs/common';
import { errorMessage } from '../../../common/errors/error-message.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
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
  /** The conversation's agent server of this moment; null while it does not run. */
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
  /** The target belongs to the socket, and to nothing else: it is out of date once the sandbox has stopped. */
  private watch: { socket: AgentServerWatch; target: AgentServerTarget } | null = null;
  private watched = false;
  private syncRequested = false;
  private running: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;
  private stateIsDue = true;
  private stateAt = -Infinity;
  private failures = 0;

  constructor(private readonly options: FollowerOptions) {}

  /** The last read failed. */
  get isFailing(): boolean {
    return this.failures > 0;
  }

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

  /** The sandbox was started again: its socket leads to an agent server that has ended. */
  restart(): void {
    this.closeWatch();
    this.requestSync();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    clearTimeout(this.timer);
    this.closeWatch();
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
    // Read each time: where a sandbox was before its pause, anybody may listen now, and the request would tell its key.
    const target = await findTarget();
    if (signal.aborted) {
      return;
    }
    this.watchTarget(target);
    if (target === null) {
      return;
    }
    if ((await sync.syncEvents(target, conversationId, signal)) === 'removed') {
      this.stopped.abort();
      this.closeWatch();
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

  private fail(error: unknown): void {
    if (this.stopped.signal.aborted) {
      return;
    }
    this.failures += 1;
    this.syncRequested = true;
    this.stateAt = -Infinity;
    this.closeWatch();
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

  /** Keeps a socket to the target and to no other one. */
  private watchTarget(target: AgentServerTarget | null): void {
    const watched = this.watch?.target;
    if (target === null || watched?.address !== target.address || watched.sessionKey !== target.sessionKey) {
      this.closeWatch();
    }
    if (target !== null) {
      this.watch ??= { target, socket: this.openWatch(target) };
    }
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
    if (this.watch?.socket !== watch) {
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

  private closeWatch(): void {
    this.watch?.socket.close();
    this.watch = null;
    this.watched = false;
  }
}
