import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import type { EventLog } from '../event-log.js';

/** A client's move of the end of a conversation's history: the next logged event follows a different event. */
export interface Navigation {
  /** How many events the log had. */
  position: number;
  /** The event that the next one follows; null: there is none before it. */
  leaf: string | null;
}

/**
 * The events of the branch that ends before position `end`, as the navigations define it. Navigations are kept
 * beside the log, because clients reject events with unknown members.
 */
export function branchUpTo(
  log: EventLog<AgentEvent>,
  navigations: readonly Navigation[],
  end: number,
): AgentEvent[] {
  const pieces: AgentEvent[][] = [];
  let left = [...navigations];
  let until = end;
  for (;;) {
    const last = left.pop();
    pieces.unshift(log.entries.slice(last?.position ?? 0, until));
    if (last === undefined || last.leaf === null) {
      return pieces.flat();
    }
    until = log.positionOf(last.leaf) + 1;
    left = left.filter(({ position }) => position < until);
  }
}

/** The events up to and including one of the log; null if the log does not have it. */
export function branchTo(
  log: EventLog<AgentEvent>,
  navigations: readonly Navigation[],
  eventId: string,
): AgentEvent[] | null {
  const position = log.positionOf(eventId);
  const before = navigations.filter((navigation) => navigation.position <= position);
  return position === -1 ? null : branchUpTo(log, before, position + 1);
}
