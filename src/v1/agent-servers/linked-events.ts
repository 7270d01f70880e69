import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { LINKED_BEGINNING } from '@slipway/agent-protocol/server.js';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { isAgentEvent } from './agent-server.client.js';
import { parseWithin } from './bounded-json.js';

/** Limit of one frame. Larger events are read from the log, which keeps few of them in memory at once. */
const MAX_FRAME_BYTES = 64 * 1024;
const FRAME_BOUNDS = { bytes: MAX_FRAME_BYTES, values: 10_000 };
/** Limits of the events of one conversation that wait to be stored. */
const MAX_EVENTS = 200;
const MAX_BYTES = 256 * 1024;

export interface LinkedEvent {
  /** Id of the event before it; null for the first event. */
  after: string | null;
  event: AgentEvent;
  bytes: number;
}

export function isLinkedFrame(frame: Buffer): boolean {
  return frame.toString('latin1', 0, LINKED_BEGINNING.length) === LINKED_BEGINNING;
}

export function parseLinkedFrame(frame: Buffer): LinkedEvent | null {
  const parsed = frame.length > MAX_FRAME_BYTES ? null : parseWithin(frame, FRAME_BOUNDS);
  const after = jsonAt(parsed, 'after');
  const event = jsonAt(parsed, 'event');
  if (!isAgentEvent(event) || (after !== null && jsonText(parsed, 'after') === null)) {
    return null;
  }
  return { after: jsonText(parsed, 'after'), event, bytes: frame.length };
}

/** Consecutive events that have arrived over the socket. Events that do not fit are read from the log instead. */
export class LinkedEvents {
  #events: LinkedEvent[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  /** False when there was no room, so that all of them were dropped. */
  add(given: LinkedEvent): boolean {
    const last = this.#events.at(-1);
    if (last !== undefined && last.event.id !== given.after) {
      this.clear();
    }
    if (this.#events.length >= MAX_EVENTS || this.#bytes + given.bytes > MAX_BYTES) {
      this.clear();
      return false;
    }
    this.#events.push(given);
    this.#bytes += given.bytes;
    return true;
  }

  clear(): void {
    this.#events = [];
    this.#bytes = 0;
  }

  /** Removes all events; returns those after `lastId` (null: all), or null when some between are missing. */
  takeAfter(lastId: string | null): AgentEvent[] | null {
    const taken = this.#events;
    this.clear();
    const known = taken.findIndex(({ event }) => event.id === lastId);
    if (known === -1 && taken[0]?.after !== lastId) {
      return null;
    }
    return taken.slice(known + 1).map(({ event }) => event);
  }
}
