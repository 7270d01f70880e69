import { Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AgentServerError, ResponseTooLargeError } from '@slipway/agent-client/agent-server.http.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import {
  AgentServerWatch,
  type LinkedEvent,
  LinkedEvents,
} from '@slipway/agent-client/agent-server.watch.js';
import type { LogProgress } from '../followed-conversation.repository.js';
import type { LogSync } from './log-sync.js';

/** Pauses between two reads of a log, with and without an open socket. */
const WATCHED_POLL_MS = 15_000;
const UNWATCHED_POLL_MS = 2_000;
const STATE_MS = 1_000;
/** The events that belong to a changed state are still arriving over the socket. */
const STATE_DELAY_MS = 100;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

interface FollowerOptions {
  conversationId: string;
  sync: Pick<LogSync, 'progress' | 'storeNext' | 'syncEvents' | 'syncState'>;
  findTarget: () => Promise<AgentServerTarget | null>;
  onRemoved: () => void;
}

/**
 * Follows one conversation's log. Events from the socket that continue the stored log are stored as they are; any
 * other news makes it read the log. Reads never overlap; requests during a read cause one more read.
 */
export class LogReader {
  private readonly logger = new Logger(LogReader.name);
  private readonly stopped = new AbortController();
  /** The target is out of date once the sandbox has stopped. */
  private watch: { socket: AgentServerWatch; target: AgentServerTarget } | null = null;
  private watched = false;
  private carriesEvents = false;
  private readonly arrived = new LinkedEvents();
  /** How far the log is stored; null when that must be looked up. */
  private progress: LogProgress | null = null;
  private syncRequested = false;
  private running: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;
  /** Infinity while the state is known. */
  private stateDueAt = -Infinity;
  private stateAt = -Infinity;
  private failures = 0;

  constructor(private readonly options: FollowerOptions) {}

  get isFailing(): boolean {
    return this.failures > 0;
  }

  requestSync(): void {
    this.syncRequested = true;
    this.stateDueAt = Math.min(this.stateDueAt, performance.now());
    this.start();
  }

  announce(): void {
    if (!this.carriesEvents) {
      this.requestSync();
      return;
    }
    this.stateDueAt = Math.min(this.stateDueAt, performance.now() + STATE_DELAY_MS);
    if (this.running === null) {
      this.schedule();
    }
  }

  /** The sandbox was started again, so the socket leads to an agent server that has ended. */
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

  private start(): void {
    if (!this.stopped.signal.aborted) {
      // `run` starts in a later microtask, as it may call this again at once.
      this.running ??= Promise.resolve()
        .then(() => this.run())
        .finally(() => {
          this.running = null;
          this.schedule();
        });
    }
  }

  private async run(): Promise<void> {
    clearTimeout(this.timer);
    try {
      while ((this.syncRequested || !this.arrived.isEmpty) && !this.stopped.signal.aborted) {
        if (this.syncRequested) {
          this.syncRequested = false;
          await this.readOnce();
        } else {
          await this.storeArrived();
        }
      }
      this.failures = 0;
    } catch (error) {
      this.fail(error);
    }
  }

  /** Sends nothing to the sandbox, so it works even after a stop. */
  private async storeArrived(): Promise<void> {
    const { conversationId, sync } = this.options;
    this.progress ??= await sync.progress(conversationId);
    const events = this.progress && this.arrived.takeAfter(this.progress.lastEventId);
    if (!this.progress || !events) {
      this.requestSync();
    } else if (events.length > 0) {
      this.progress = await sync.storeNext(conversationId, events, this.progress);
    }
  }

  private async readOnce(): Promise<void> {
    const { conversationId, sync, findTarget, onRemoved } = this.options;
    const { signal } = this.stopped;
    // Looked up each time: after a pause, another program at the old address would receive the key.
    const target = await findTarget();
    if (signal.aborted) {
      return;
    }
    this.watchTarget(target);
    if (target === null) {
      return;
    }
    this.progress = null;
    if ((await sync.syncEvents(target, conversationId, signal)) === 'removed') {
      this.stopped.abort();
      this.closeWatch();
      onRemoved();
      return;
    }
    const now = performance.now();
    if (now >= this.stateDueAt && now - this.stateAt >= STATE_MS) {
      this.stateAt = now;
      this.stateDueAt = Infinity;
      if (!(await sync.syncState(target, conversationId, signal))) {
        this.stateDueAt = -Infinity;
      }
    }
  }

  private fail(error: unknown): void {
    if (this.stopped.signal.aborted) {
      return;
    }
    // The sandbox is being ended for that, so the next look comes after the longest pause.
    this.failures += error instanceof ResponseTooLargeError ? Infinity : 1;
    this.syncRequested = true;
    this.stateAt = -Infinity;
    this.stateDueAt = -Infinity;
    this.progress = null;
    this.closeWatch();
    // The agent server does not know a conversation before it is started there.
    const isUnknown = error instanceof AgentServerError && error.status === 404;
    if ((this.failures === 1 || this.failures === Infinity) && !isUnknown) {
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
    const stateAt = Math.max(this.stateDueAt, this.stateAt + STATE_MS);
    return Math.min(poll, Math.max(0, stateAt - performance.now()));
  }

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
      opened: (carriesEvents) => {
        openedAt = performance.now();
        this.watched = true;
        this.carriesEvents = carriesEvents;
        this.requestSync();
      },
      appended: (event) => this.take(event),
      stateChanged: () => this.announce(),
      changed: () => this.requestSync(),
      closed: () => this.unwatch(watch, performance.now() - openedAt),
    });
    return watch;
  }

  /** After a socket that lasted, the log is read at once; one that closes right away waits for the next poll. */
  private unwatch(watch: AgentServerWatch, openForMs: number): void {
    if (this.watch?.socket !== watch) {
      return;
    }
    this.forgetWatch();
    if (openForMs > UNWATCHED_POLL_MS) {
      this.requestSync();
    } else if (this.running === null) {
      this.schedule();
    }
  }

  private closeWatch(): void {
    this.watch?.socket.close();
    this.forgetWatch();
  }

  private forgetWatch(): void {
    this.watch = null;
    this.watched = false;
    this.carriesEvents = false;
    this.arrived.clear();
  }

  private take(event: LinkedEvent): void {
    if (this.arrived.add(event)) {
      this.start();
    } else {
      this.requestSync();
    }
  }
}
