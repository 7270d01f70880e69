import { Injectable, Logger } from '@nestjs/common';
import type { AgentEvent } from '../../agent-protocol/events.js';
import type { ObservedState } from './store/observed-state.js';

export type StoredListener = (conversationId: string, events: readonly AgentEvent[]) => void;
export type StateListener = (conversationId: string, state: ObservedState) => void;

/**
 * Who wants to know at once what was learnt of a conversation. Called in the process that stored it, after the commit;
 * a process may die between the two, so this is for what can be missed or is looked at again later.
 */
@Injectable()
export class ConversationEvents {
  private readonly logger = new Logger(ConversationEvents.name);
  private readonly stored = new Set<StoredListener>();
  private readonly state = new Set<StateListener>();

  /** Events were stored, in their order; each of them is told once. */
  onStored(listener: StoredListener): void {
    this.stored.add(listener);
  }

  /** Execution status, metrics or title are others than before; only what changed is told. */
  onState(listener: StateListener): void {
    this.state.add(listener);
  }

  emitStored(conversationId: string, events: readonly AgentEvent[]): void {
    for (const listener of this.stored) {
      this.guarded(() => listener(conversationId, events));
    }
  }

  emitState(conversationId: string, state: ObservedState): void {
    for (const listener of this.state) {
      this.guarded(() => listener(conversationId, state));
    }
  }

  /** A listener's failure must not end the following of a log. */
  private guarded(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.logger.error('a listener failed', error instanceof Error ? error.stack : String(error));
    }
  }
}
