import type { AgentEvent } from '../../agent-protocol/events.js';
import { LINKED_BEGINNING } from '../../agent-protocol/linked-frames.js';
import { jsonAt, jsonText } from '../../common/json-access.js';
import { isAgentEvent } from './agent-server.client.js';
import { parseWithin } from './bounded-json.js';

/** Of a frame. Larger events are read from the log, where few of them are in memory at once. */
const MAX_FRAME_BYTES = 64 * 1024;
const FRAME_BOUNDS = { bytes: MAX_FRAME_BYTES, values: 10_000 };
/** Of what waits to be stored, for one conversation. */
const MAX_EVENTS = 200;
const MAX_BYTES = 256 * 1024;

/** An event that came over the socket, and where it stands in the log. */
export interface LinkedEvent {
  /** Id of the event before it; null: it is the first one. */
  after: string | null;
  event: AgentEvent;
  /** Of its frame. */
  bytes: number;
}

/** Whether a frame claims to hold an event of the log. */
export function isLinkedFrame(frame: Buffer): boolean {
  return frame.toString('latin1', 0, LINKED_BEGINNING.length) === LINKED_BEGINNING;
}

/** Reads a linked frame; null when it is too large, or anything else than that. */
export function parseLinkedFrame(frame: Buffer): LinkedEvent | null {
  const parsed = frame.length > MAX_FRAME_BYTES ? null : parseWithin(frame, FRAME_BOUNDS);
  const after = jsonAt(parsed, 'after');
  const event = jsonAt(parsed, 'event');
  if (!isAgentEvent(event) || (after !== null && jsonText(parsed, 'after') === null)) {
    return null;
  }
  return { after: jsonText(parsed, 'after'), event, bytes: frame.length };
}

/** Events that have arrived, each right after the one before it. What does not fit is left to be read from the log. */
export class LinkedEvents {
  #events: LinkedEvent[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#events.length === 0;
  }

  /** @returns false when there was no room, so that all of them were dropped */
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

  /**
   * Takes all of them, and returns those that come after an event.
   *
   * @param lastId of that event; null: before the first one
   * @returns null when there are events between the two, which are only in the log
   */
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
