import type { AgentEvent } from '../../agent-protocol/events.js';
import type { EventLog } from '../event-log.js';

/** A client moved the end of a conversation's history: what is logged from here on follows another event. */
export interface Navigation {
  /** How many events the log had. */
  position: number;
  /** The event that the next one follows; null: there is none before it. */
  leaf: string | null;
}

/**
 * The events up to an end, each following the one before it as the navigations say. The log itself only ever grows:
 * what a navigation left behind stays in it. That is kept beside the log and not in the events, as clients refuse events
 * with members that they do not know.
 *
 * @param end position behind the last event
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

/**
 * The events up to one of the log, and with it.
 *
 * @returns null if the log does not have it
 */
export function branchTo(
  log: EventLog<AgentEvent>,
  navigations: readonly Navigation[],
  eventId: string,
): AgentEvent[] | null {
  const position = log.positionOf(eventId);
  const before = navigations.filter((navigation) => navigation.position <= position);
  return position === -1 ? null : branchUpTo(log, before, position + 1);
}
