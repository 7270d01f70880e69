import type { ConversationInfo } from '../../agent-protocol/conversation.js';
import type { AgentEvent } from '../../agent-protocol/events.js';

/** Events kept while the receiver is unavailable; the oldest are dropped first. */
const MAX_QUEUED_EVENTS = 500;
const MAX_BATCH = 100;

interface WebhookQueueOptions {
  batchSize: number;
  flushDelayMs: number;
  /** Both resolve when the request is over, delivered or not; they never reject. */
  sendInfo: (info: ConversationInfo) => Promise<void>;
  sendEvents: (events: AgentEvent[]) => Promise<void>;
}

/** What is to be sent about one conversation, one request at a time: its latest state, and its events in order. */
export class WebhookQueue {
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
    if (this.#events.length > MAX_QUEUED_EVENTS) {
      this.#events.shift();
    }
    this.#schedule();
  }

  /** Resolves once the queue is empty. */
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
        await this.#options.sendInfo(info);
      }
      if (events.length > 0) {
        await this.#options.sendEvents(events);
      }
    }
  }
}
