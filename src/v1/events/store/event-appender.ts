import { Injectable } from '@nestjs/common';
import { isDatabaseAway } from '../../../common/errors/database-failure.js';
import { EventRepository, type NextEvents } from './event.repository.js';

/** While one statement is committed, the next is sent. The other connections are left for requests. */
const MAX_STATEMENTS = 2;
/** Limits of one statement, unless the first log alone has more. */
const MAX_LOGS = 100;
const MAX_CHARACTERS = 1024 * 1024;
/** A retry helps because a lease renewal locks a log only for a moment. */
const MAX_ATTEMPTS = 3;

interface Waiting {
  log: NextEvents;
  attempts: number;
  resolve: (stored: boolean) => void;
  reject: (error: unknown) => void;
}

/** Batches the events of many logs, so that a commit costs the same for a hundred conversations as for one. */
@Injectable()
export class EventAppender {
  private waiting: Waiting[] = [];
  private statements = 0;

  constructor(private readonly events: EventRepository) {}

  /** False when the events may not continue the log or PostgreSQL refuses them: use `EventRepository.append`. */
  async append(log: NextEvents): Promise<boolean> {
    return await new Promise<boolean>((resolve, reject) => {
      this.waiting.push({ log, attempts: 0, resolve, reject });
      this.begin();
    });
  }

  private begin(): void {
    while (this.statements < MAX_STATEMENTS && this.waiting.length > 0) {
      this.statements += 1;
      void this.store(this.takeBatch()).finally(() => {
        this.statements -= 1;
        this.begin();
      });
    }
  }

  private takeBatch(): Waiting[] {
    const batch = new Map<string, Waiting>();
    const left: Waiting[] = [];
    let characters = 0;
    for (const waiting of this.waiting) {
      const { conversationId, events } = waiting.log;
      const added = events.reduce((sum, { body }) => sum + body.length, 0);
      const fits = batch.size === 0 || (batch.size < MAX_LOGS && characters + added <= MAX_CHARACTERS);
      if (fits && !batch.has(conversationId)) {
        batch.set(conversationId, waiting);
        characters += added;
      } else {
        left.push(waiting);
      }
    }
    this.waiting = left;
    return [...batch.values()];
  }

  private async store(batch: readonly Waiting[]): Promise<void> {
    try {
      const stored = await this.events.appendMany(batch.map(({ log }) => log));
      for (const waiting of batch) {
        this.settle(waiting, stored.has(waiting.log.conversationId));
      }
    } catch (error) {
      const isAway = isDatabaseAway(error);
      // PostgreSQL refused one of the logs, and the others must not fail with it.
      batch.forEach(({ resolve, reject }) => (isAway ? reject(error) : resolve(false)));
    }
  }

  private settle(waiting: Waiting, isStored: boolean): void {
    const attempts = waiting.attempts + 1;
    if (isStored || attempts === MAX_ATTEMPTS) {
      waiting.resolve(isStored);
    } else {
      this.waiting.push({ ...waiting, attempts });
    }
  }
}
