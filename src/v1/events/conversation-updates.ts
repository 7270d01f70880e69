import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import type { AppendedEvents } from './store/event.repository.js';

/** New events and their rows, in order, each of them once; of the state only the members that changed. */
type ConversationUpdate = Pick<AppendedEvents, 'events' | 'rows' | 'state'>;
type Listener = (conversationId: string, update: ConversationUpdate) => void;

const NOTHING: ConversationUpdate = { events: [], rows: [], state: null };

/**
 * Emits changes of conversations after their commit, in the process that stored them. The process may die in between,
 * so use listeners only for work that may be missed or is checked again later.
 */
@Injectable()
export class ConversationUpdates {
  private readonly logger = new Logger(ConversationUpdates.name);
  private readonly listeners: Listener[] = [];

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** A failing listener must not stop the log from being followed. */
  emit(conversationId: string, update: Partial<ConversationUpdate>): void {
    for (const listener of this.listeners) {
      try {
        listener(conversationId, { ...NOTHING, ...update });
      } catch (error) {
        this.logger.error('failed to call conversation listener', errorStack(error));
      }
    }
  }
}
