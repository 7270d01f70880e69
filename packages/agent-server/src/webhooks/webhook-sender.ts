import pRetry, { AbortError } from 'p-retry';
import type { ConversationInfo } from '@slipway/agent-protocol/conversation-api.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { log } from '../observability.js';

/** Events kept while the receiver is unavailable; the oldest are dropped first. */
const MAX_QUEUED_EVENTS = 500;
const MAX_BATCH = 100;

/** Resolves when the request is over, delivered or not; never rejects. */
type Send = (path: string, body: unknown) => Promise<void>;

/** What is to be sent about one conversation, one request at a time: its latest state, and its events in order. */
class WebhookQueue {
  readonly #id: string;
  readonly #options: WebhookOptions;
  readonly #send: Send;
  #info: ConversationInfo | null = null;
  #events: AgentEvent[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;

  constructor(id: string, options: WebhookOptions, send: Send) {
    this.#id = id;
    this.#options = options;
    this.#send = send;
  }

  setInfo(info: ConversationInfo): void {
    this.#info = info;
    this.#schedule();
  }

  addEvent(event: AgentEvent): void {
    this.#events.push(event);
    if (this.#events.length > MAX_QUEUED_EVENTS) {
      this.#events.shift();
    }
    this.#schedule();
  }

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
      const events = this.#events.splice(0, MAX_BATCH);
      this.#info = null;
      if (info !== null) {
        await this.#send('/conversations', info);
      }
      if (events.length > 0) {
        await this.#send(`/events/${this.#id.replaceAll('-', '')}`, events);
      }
    }
  }
}

export interface WebhookOptions {
  /** Has no trailing slash. */
  baseUrl: string;
  sessionKey: string | null;
  batchSize: number;
  flushDelayMs: number;
  retries: number;
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

/** Webhooks are hints: what cannot be delivered is dropped, because the service reads the event log itself. */
export class WebhookSender {
  readonly #options: WebhookOptions;
  readonly #queues = new Map<string, WebhookQueue>();
  /** How many readers each log has that get its events anyway. */
  readonly #readers = new Map<string, number>();
  readonly #stopped = new AbortController();

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** A reader of the log is told of its conversation's state as well. */
  conversationChanged(info: ConversationInfo): void {
    if (!this.#readers.has(info.id)) {
      this.conversationRemoved(info);
    }
  }

  conversationRemoved(info: ConversationInfo): void {
    this.#queueOf(info.id).setInfo(info);
  }

  eventAppended(conversationId: string, event: AgentEvent): void {
    if (!this.#readers.has(conversationId)) {
      this.#queueOf(conversationId).addEvent(event);
    }
  }

  /** Sends nothing of a conversation while the service reads its log, until the returned function is called. */
  withhold(conversationId: string): () => void {
    this.#readers.set(conversationId, (this.#readers.get(conversationId) ?? 0) + 1);
    return () => {
      const left = (this.#readers.get(conversationId) ?? 0) - 1;
      if (left > 0) {
        this.#readers.set(conversationId, left);
      } else {
        this.#readers.delete(conversationId);
      }
    };
  }

  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), graceMs);
    await Promise.all([...this.#queues.values()].map((queue) => queue.flush()));
    clearTimeout(timer);
    this.#stopped.abort();
  }

  #queueOf(id: string): WebhookQueue {
    const queue =
      this.#queues.get(id) ?? new WebhookQueue(id, this.#options, (path, body) => this.#send(path, body));
    this.#queues.set(id, queue);
    return queue;
  }

  async #send(path: string, body: unknown): Promise<void> {
    const { retries, retryDelayMs } = this.#options;
    const { signal } = this.#stopped;
    const json = JSON.stringify(body);
    try {
      const options = { retries, minTimeout: retryDelayMs, signal };
      await pRetry(async () => await this.#post(path, json), options);
    } catch (error) {
      if (!signal.aborted) {
        log('warn', 'failed to deliver webhook', { path, error: errorWithCauses(error) });
      }
    }
  }

  async #post(path: string, json: string): Promise<void> {
    const { baseUrl, sessionKey, timeoutMs } = this.#options;
    const response = await fetch(`${baseUrl}${path}`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        ...(sessionKey === null ? {} : { 'X-Session-API-Key': sessionKey }),
      },
      body: json,
      // The session key must go to this address only.
      redirect: 'manual',
      signal: AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(timeoutMs)]),
    });
    await response.body?.cancel().catch(() => undefined);
    if (!response.ok) {
      const isTemporary = response.status >= 500 || response.status === 429 || response.status === 408;
      const reason = `status ${response.status}`;
      throw isTemporary ? new Error(reason) : new AbortError(reason);
    }
  }
}
