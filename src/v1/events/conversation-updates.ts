import { Injectable, Logger } from '@nestjs/common';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { errorStack } from '@slipway/common/errors/error-message.js';
import type { StoredEvent } from './store/event.queries.js';
import type { ObservedState } from './store/observed-state.js';

type StoredListener = (conversationId: string, events: readonly AgentEvent[]) => void;
type RowsListener = (conversationId: string, rows: readonly StoredEvent[]) => void;
type StateListener = (conversationId: string, state: ObservedState) => void;

/**
 * Emits changes of conversations after their commit, in the process that stored them. The process may die in between,
 * so use listeners only for work that may be missed or is checked again later.
 */
@Injectable()
export class ConversationUpdates {
  private readonly logger = new Logger(ConversationUpdates.name);
  private readonly storedListeners = new Set<StoredListener>();
  private readonly rowsListeners = new Set<RowsListener>();
  private readonly stateListeners = new Set<StateListener>();

  /** Called with newly stored events, in order; each event is emitted once. */
  onStored(listener: StoredListener): void {
    this.storedListeners.add(listener);
  }

  onRows(listener: RowsListener): void {
    this.rowsListeners.add(listener);
  }

  /** Called with only the members that changed. */
  onState(listener: StateListener): void {
    this.stateListeners.add(listener);
  }

  emitStored(conversationId: string, events: readonly AgentEvent[]): void {
    for (const listener of this.storedListeners) {
      this.call(() => listener(conversationId, events));
    }
  }

  emitRows(conversationId: string, rows: readonly StoredEvent[]): void {
    for (const listener of this.rowsListeners) {
      this.call(() => listener(conversationId, rows));
    }
  }

  emitState(conversationId: string, state: ObservedState): void {
    for (const listener of this.stateListeners) {
      this.call(() => listener(conversationId, state));
    }
  }

  /** A failing listener must not stop the log from being followed. */
  private call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.logger.error('failed to call conversation listener', errorStack(error));
    }
  }
}
