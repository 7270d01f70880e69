import type { ConversationInfo } from '../../agent-protocol/conversation-info.js';
import type { AgentEvent } from '../../agent-protocol/events.js';

/** While the receiver is away no more than this is kept; the oldest go first. */
const MAX_WAITING = 500;

export interface WebhookQueueOptions {
  batchSize: number;
  flushDelayMs: number;
  /** Both settle when the matter is over, delivered or not; they never reject. */
  sendInfo: (info: ConversationInfo) => Promise<void>;
  sendEvents: (events: AgentEvent[]) => Promise<void>;
}

/** What is to be told of one conversation: one request at a time, its newest state, its events in order. */
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
