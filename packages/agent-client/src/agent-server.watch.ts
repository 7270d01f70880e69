import { type RawData, WebSocket } from 'ws';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { LINKED_BEGINNING, LINKED_FRAMES } from '@slipway/agent-protocol/server.js';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { isAgentEvent } from './agent-server.client.js';
import { parseWithin } from './bounded-json.js';
import type { AgentServerTarget } from './agent-server.connections.js';
import { requestOrigin, requireSandboxAddress } from '@slipway/sandboxes/sandbox-address.js';
import { connectionOptions } from '@slipway/sandboxes/sandbox-connection.js';

const HANDSHAKE_TIMEOUT_MS = 5_000;
const PING_INTERVAL_MS = 20_000;
/** The same limit as for a page of events, because a frame holds one event. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
/** Frames and bytes read within `MOMENT_MS`; the rest of a flood waits in the sender's memory. */
const MAX_FRAMES = 200;
const MAX_FRAMES_BYTES = 2 * 1024 * 1024;
const MOMENT_MS = 200;
/** When the server has left more than this many of our bytes unread, its pings get no response. */
const MAX_UNREAD_BYTES = 64 * 1024;

interface WatchListener {
  /** Nothing is missed from now on. `carriesEvents`: whether small events arrive themselves. */
  opened: (carriesEvents: boolean) => void;
  appended: (event: LinkedEvent) => void;
  /** The conversation's state has changed; its log has nothing new beyond the events already passed to `appended`. */
  stateChanged: () => void;
  changed: () => void;
  /** Called once, even if no connection was ever made; nothing is called after it. */
  closed: () => void;
}

/** A linked frame holds the log's next event; any other only signals that the log must be read (docs/adr/0042). */
export class AgentServerWatch {
  private readonly socket: WebSocket;
  private readonly pings: NodeJS.Timeout;
  private carriesEvents = false;
  private frames = 0;
  private bytes = 0;
  private momentBegan = -Infinity;
  private resumption: NodeJS.Timeout | undefined;
  private pongReceived = true;
  private ended = false;

  constructor(
    target: AgentServerTarget,
    conversationId: string,
    private readonly listener: WatchListener,
  ) {
    const address = requireSandboxAddress(target.address);
    const origin = requestOrigin(address).replace(/^http/, 'ws');
    const { parameter, header, value } = LINKED_FRAMES;
    const path = `/sockets/events/${encodeURIComponent(conversationId)}?${parameter}=${value}`;
    this.socket = new WebSocket(`${origin}${path}`, {
      ...(address.kind !== 'tcp' && connectionOptions(address)),
      headers: { 'X-Session-API-Key': target.sessionKey },
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MAX_FRAME_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
      // One pong per ping would fill our memory when the server sends pings and reads nothing.
      autoPong: false,
    });
    this.socket.on('upgrade', ({ headers }) => {
      this.carriesEvents = headers[header] === value;
    });
    this.socket.on('open', () => this.notify(() => listener.opened(this.carriesEvents)));
    this.socket.on('message', (data) => {
      const frame = bytesOf(data);
      this.notify(() => this.report(frame));
      this.slowDown(frame.length);
    });
    this.socket.on('ping', (data) => {
      if (this.socket.bufferedAmount < MAX_UNREAD_BYTES) {
        this.socket.pong(data);
      }
      this.slowDown(0);
    });
    this.socket.on('pong', () => {
      this.pongReceived = true;
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.end());
    this.pings = setInterval(() => this.ping(), PING_INTERVAL_MS);
    this.pings.unref();
  }

  close(): void {
    this.ended = true;
    this.clearTimers();
    this.socket.terminate();
  }

  private notify(listener: () => void): void {
    if (!this.ended) {
      listener();
    }
  }

  private report(frame: Buffer): void {
    if (!this.carriesEvents) {
      this.listener.changed();
    } else if (isLinkedFrame(frame)) {
      const linked = parseLinkedFrame(frame);
      if (linked) {
        this.listener.appended(linked);
      } else {
        this.listener.changed();
      }
    } else {
      this.listener.stateChanged();
    }
  }

  /** Pauses reading when the current moment brought too much, so that one server cannot hold up the others. */
  private slowDown(bytes: number): void {
    const now = performance.now();
    if (now - this.momentBegan >= MOMENT_MS) {
      this.momentBegan = now;
      this.frames = 0;
      this.bytes = 0;
    }
    this.frames += 1;
    this.bytes += bytes;
    const isFlood = this.frames >= MAX_FRAMES || this.bytes >= MAX_FRAMES_BYTES;
    if (!isFlood || this.resumption !== undefined || this.ended) {
      return;
    }
    this.socket.pause();
    this.resumption = setTimeout(() => {
      this.momentBegan = -Infinity;
      this.resumption = undefined;
      this.socket.resume();
    }, MOMENT_MS).unref();
  }

  private clearTimers(): void {
    clearInterval(this.pings);
    clearTimeout(this.resumption);
  }

  private end(): void {
    this.clearTimers();
    if (!this.ended) {
      this.ended = true;
      this.listener.closed();
    }
  }

  private ping(): void {
    if (this.socket.readyState !== WebSocket.OPEN) {
      return;
    }
    if (this.pongReceived) {
      this.pongReceived = false;
      this.socket.ping();
    } else {
      this.socket.terminate();
    }
  }
}

function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) {
    return data;
  }
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Limit of one frame. Larger events are read from the log, which keeps few of them in memory at once. */
const MAX_LINKED_BYTES = 64 * 1024;
const FRAME_BOUNDS = { bytes: MAX_LINKED_BYTES, values: 10_000 };
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
  const parsed = frame.length > MAX_LINKED_BYTES ? null : parseWithin(frame, FRAME_BOUNDS);
  const after = jsonAt(parsed, 'after');
  const event = jsonAt(parsed, 'event');
  if (!isAgentEvent(event) || (after !== null && jsonText(parsed, 'after') === null)) {
    return null;
  }
  return { after: jsonText(parsed, 'after'), event, bytes: frame.length };
}

/** Consecutive events that have arrived over the socket. Events that do not fit are read from the log instead. */
export class LinkedEvents {
  private events: LinkedEvent[] = [];
  private bytes = 0;

  get isEmpty(): boolean {
    return this.events.length === 0;
  }

  /** False when there was no room, so that all of them were dropped. */
  add(given: LinkedEvent): boolean {
    const last = this.events.at(-1);
    if (last !== undefined && last.event.id !== given.after) {
      this.clear();
    }
    if (this.events.length >= MAX_EVENTS || this.bytes + given.bytes > MAX_BYTES) {
      this.clear();
      return false;
    }
    this.events.push(given);
    this.bytes += given.bytes;
    return true;
  }

  clear(): void {
    this.events = [];
    this.bytes = 0;
  }

  /** Removes all events; returns those after `lastId` (null: all), or null when some between are missing. */
  takeAfter(lastId: string | null): AgentEvent[] | null {
    const taken = this.events;
    this.clear();
    const known = taken.findIndex(({ event }) => event.id === lastId);
    if (known === -1 && taken[0]?.after !== lastId) {
      return null;
    }
    return taken.slice(known + 1).map(({ event }) => event);
  }
}
