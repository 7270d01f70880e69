import { setTimeout as wait } from 'node:timers/promises';
import type { ConversationInfo } from '../../agent-protocol/conversation-info.js';
import type { AgentEvent } from '../../agent-protocol/events.js';
import { log } from '../log.js';
import { WebhookQueue } from './webhook-queue.js';
import { describeFailure } from '../failure.js';

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
