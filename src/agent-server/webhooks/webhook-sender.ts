import { setTimeout as wait } from 'node:timers/promises';
import type { ConversationInfo } from '../../agent-protocol/conversation.js';
import type { AgentEvent } from '../../agent-protocol/events.js';
import { describeFailure, log } from '../log.js';

/** While the receiver is away no more than this is kept; the oldest go first. */
const MAX_WAITING = 500;

interface WebhookQueueOptions {
  batchSize: number;
  flushDelayMs: number;
  /** Both settle when the matter is over, delivered or not; they never reject. */
  sendInfo: (info: ConversationInfo) => Promise<void>;
  sendEvents: (events: AgentEvent[]) => Promise<void>;
}

/** What is to be told of one conversation: one request at a time, its newest state, its events in order. */
class WebhookQueue {
  readonly #options: WebhookQueueOptions;
  #info: ConversationInfo | null = null;
  #events: AgentEvent[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;

  constructor(options: WebhookQueueOptions) {
    this.#options = options;
  }

  setInfo(info: ConversationInfo): void {
    this.#info = info;
    this.#schedule();
  }

  addEvent(event: AgentEvent): void {
    this.#events.push(event);
    if (this.#events.length > MAX_WAITING) {
      this.#events.shift();
    }
    this.#schedule();
  }

  /** Resolves once nothing waits any more. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
    await this.#sending;
  }

  #schedule(): void {
    if (this.#events.length >= this.#options.batchSize) {
      void this.flush();
    } else {
      this.#timer ??= setTimeout(() => void this.flush(), this.#options.flushDelayMs);
    }
  }

  async #sendAll(): Promise<void> {
    while (this.#info !== null || this.#events.length > 0) {
      const info = this.#info;
      const events = this.#events.splice(0, 100);
      this.#info = null;
      if (info !== null) {
        await this.#options.sendInfo(info);
      }
      if (events.length > 0) {
        await this.#options.sendEvents(events);
      }
    }
  }
}

export interface WebhookOptions {
  /** Without a slash at its end. */
  baseUrl: string;
  sessionKey: string | null;
  /** Events of a conversation that wait no longer. */
  batchSize: number;
  flushDelayMs: number;
  retries: number;
  /** Before the first repetition; doubled for each further one. */
  retryDelayMs: number;
  timeoutMs: number;
}

export const WEBHOOK_DEFAULTS: Omit<WebhookOptions, 'baseUrl' | 'sessionKey'> = {
  batchSize: 10,
  flushDelayMs: 250,
  retries: 3,
  retryDelayMs: 1_000,
  timeoutMs: 10_000,
};

/**
 * Tells the service what happens, soon after it happens. It is a hint, not the record: what could not be delivered is
 * dropped, for the service reads the log itself. Nothing waits for it.
 */
export class WebhookSender {
  readonly #options: WebhookOptions;
  readonly #queues = new Map<string, WebhookQueue>();
  readonly #stopped = new AbortController();

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  conversation(info: ConversationInfo): void {
    this.#queueOf(info.id).setInfo(info);
  }

  event(conversationId: string, event: AgentEvent): void {
    this.#queueOf(conversationId).addEvent(event);
  }

  /** Sends what waits, for as long as it is given. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), graceMs);
    await Promise.all([...this.#queues.values()].map((queue) => queue.flush()));
    clearTimeout(timer);
    this.#stopped.abort();
  }

  #queueOf(id: string): WebhookQueue {
    const known = this.#queues.get(id);
    if (known !== undefined) {
      return known;
    }
    const { batchSize, flushDelayMs } = this.#options;
    const queue = new WebhookQueue({
      batchSize,
      flushDelayMs,
      sendInfo: (info) => this.#post('/conversations', info),
      sendEvents: (events) => this.#post(`/events/${id.replaceAll('-', '')}`, events),
    });
    this.#queues.set(id, queue);
    return queue;
  }

  async #post(path: string, body: unknown): Promise<void> {
    const { retries, retryDelayMs } = this.#options;
    for (let attempt = 0; !this.#stopped.signal.aborted; attempt += 1) {
      const failure = await this.#tryPost(path, JSON.stringify(body));
      if (failure === null) {
        return;
      }
      if (attempt >= retries || failure.final) {
        log('warn', 'a webhook was not delivered', { path, reason: failure.reason });
        return;
      }
      const delay = retryDelayMs * 2 ** attempt;
      await wait(delay, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  /** @returns null when it was delivered; final: another attempt would change nothing */
  async #tryPost(path: string, body: string): Promise<{ reason: string; final: boolean } | null> {
    const { baseUrl, sessionKey, timeoutMs } = this.#options;
    try {
      const response = await fetch(`${baseUrl}${path}`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          ...(sessionKey === null ? {} : { 'X-Session-API-Key': sessionKey }),
        },
        body,
        // The key goes to the address that we were given and nowhere else.
        redirect: 'manual',
        signal: AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(timeoutMs)]),
      });
      await response.body?.cancel();
      if (response.ok) {
        return null;
      }
      const retryable = response.status >= 500 || response.status === 429 || response.status === 408;
      return { reason: `status ${response.status}`, final: !retryable };
    } catch (error) {
      return { reason: describeFailure(error).name, final: false };
    }
  }
}
