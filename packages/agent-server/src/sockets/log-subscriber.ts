import { randomUUID } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { ConversationInfo } from '@slipway/agent-protocol/conversation-api.js';
import { linkedFrame } from '@slipway/agent-protocol/server.js';
import type { DraftAnswer, ToldDraft } from '../conversations/draft-answer.js';
import { type EventIdentity, type EventLog, nextTimestamp } from '../event-log.js';

/** Bytes buffered for one client above which nothing more is sent. */
const HIGH_WATER_MARK = 256 * 1024;
const MAX_EXTRA_FRAMES = 20;
const ERROR = 'ServerErrorEvent';

export const CLOSE_CODES = {
  AUTH_FAILED: 4001,
  UNKNOWN: 4004,
  TRY_LATER: 1013,
  GOING_AWAY: 1001,
  FAILED: 1011,
};

/**
 * How a frame has its event: alone, with the id of the one before it, or as `/sockets/session/` of the reference numbers it.
 * `drafts`: as there, but only what is being written.
 */
export type Framing = 'plain' | 'linked' | 'session' | 'drafts';

/** An event for clients that is not in the log. */
type ExtraEvent = EventIdentity & Record<string, unknown>;

interface LogSubscriberOptions<E extends EventIdentity> {
  socket: WebSocket;
  log: EventLog<E>;
  from: number;
  framing: Framing;
  first: (() => ExtraEvent) | null;
  /** The answer being written; null if the client gets answers as a whole. */
  draft: DraftAnswer | null;
  stallMs: number;
}

/** How much of a draft was sent. */
interface SentDraft {
  id: string;
  attempt: number;
  frames: number;
  text: number;
  reasoning: number;
}

/** Sends a log no faster than its client reads; entries are taken only when sent, so a slow client costs no memory. */
export class LogSubscriber<E extends EventIdentity> {
  readonly #options: LogSubscriberOptions<E>;
  readonly #unsubscribe: (() => void)[];
  /** Frames that are not in the log, each due once the log was sent up to a position. */
  #extra: { after: number; event: () => ExtraEvent }[];
  #position: number;
  #sent: SentDraft | null = null;
  #stalled: NodeJS.Timeout | undefined;

  constructor(options: LogSubscriberOptions<E>) {
    this.#options = options;
    this.#position = options.from;
    const { framing, first, log, socket, draft } = options;
    // The state is that after the whole log, and clients of a session take frames in order.
    const after = framing === 'session' ? log.entries.length : 0;
    this.#extra = first === null ? [] : [{ after, event: first }];
    const pump = (): void => this.#pump();
    this.#unsubscribe = [log.onAppend(pump), ...(draft === null ? [] : [draft.listen(pump)])];
    socket.once('close', () => this.#end());
    this.#pump();
  }

  /** Sends an event that is not in the log, after everything that is in the log by now. */
  sendExtra(event: () => ExtraEvent): void {
    if (this.#options.framing === 'drafts') {
      return;
    }
    this.#extra.push({ after: this.#options.log.entries.length, event });
    if (this.#extra.length > MAX_EXTRA_FRAMES) {
      // The oldest is dropped: clients wait for the latest state.
      this.#extra.shift();
    }
    this.#pump();
  }

  #pump(): void {
    const { socket, log, framing } = this.#options;
    // The log may have been cleared.
    this.#position = Math.min(framing === 'drafts' ? Infinity : this.#position, log.entries.length);
    while (socket.readyState === socket.OPEN) {
      if (socket.bufferedAmount > HIGH_WATER_MARK) {
        this.#stalled ??= setTimeout(() => this.#drop(), this.#options.stallMs);
        return;
      }
      const frame = this.#next();
      if (frame === null) {
        return;
      }
      socket.send(frame, () => this.#onSent());
    }
  }

  #next(): string | null {
    const { log, framing, draft } = this.#options;
    const [extra] = this.#extra;
    if (extra !== undefined && extra.after <= this.#position) {
      this.#extra.shift();
      const event = extra.event();
      return JSON.stringify(framing === 'session' ? sessionFrame(event) : event);
    }
    const entry = log.entries[this.#position];
    if (entry === undefined) {
      const frame = draft === null ? null : this.#nextOf(draft, framing === 'plain');
      return frame && JSON.stringify(frame);
    }
    const seq = this.#position;
    this.#position += 1;
    const text = JSON.stringify(entry);
    switch (framing) {
      case 'session':
        return `{"type":"durable","seq":${seq},"event":${text}}`;
      case 'linked':
        return linkedFrame(log.entries[seq - 1]?.id ?? null, text);
      default:
        return text;
    }
  }

  /** A slow client gets fewer and longer pieces, and those of an answer that is in the log not at all. */
  #nextOf({ told }: DraftAnswer, isPlain: boolean): object | null {
    const { log } = this.#options;
    const current = told !== null && log.positionOf(told.id) === -1 ? told : null;
    const sent = this.#sent;
    if (sent !== null && sent.id !== current?.id) {
      this.#sent = null;
      if (!isPlain && log.positionOf(sent.id) === -1) {
        return { type: 'item_aborted', item_id: sent.id, attempt: sent.attempt, reason: 'discarded' };
      }
    }
    if (current === null) {
      return null;
    }
    const { id, attempt, anchor } = current;
    if (this.#sent?.attempt !== attempt) {
      this.#sent = { id, attempt, frames: 0, text: 0, reasoning: 0 };
      if (!isPlain) {
        return { type: 'item_started', item_id: id, attempt, anchor_seq: anchor };
      }
    }
    return nextPiece(current, this.#sent, isPlain);
  }

  #onSent(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.#pump();
  }

  #drop(): void {
    this.#options.socket.close(CLOSE_CODES.TRY_LATER, 'Too slow');
    // A client that does not read will not read the close frame either.
    this.#options.socket.terminate();
  }

  #end(): void {
    clearTimeout(this.#stalled);
    this.#unsubscribe.forEach((end) => end());
    this.#extra = [];
  }
}

/** The full state of a conversation, as the event that clients wait for after each run. */
export function stateEvent(info: ConversationInfo): ExtraEvent {
  return {
    kind: 'ConversationStateUpdateEvent',
    ...identity(),
    source: 'environment',
    key: 'full_state',
    value: info,
  };
}

export function errorEvent(code: string, detail: string): ExtraEvent {
  return { kind: ERROR, ...identity(), source: 'environment', code, detail };
}

function sessionFrame(event: ExtraEvent): object {
  const { kind, code, detail } = event;
  return kind === ERROR ? { type: 'error', code, detail } : { type: 'transient', event };
}

function nextPiece(told: ToldDraft, sent: SentDraft, isPlain: boolean): object | null {
  const kind = told.reasoning.length > sent.reasoning ? 'reasoning' : 'text';
  const content = told[kind].slice(sent[kind]);
  if (content === '') {
    return null;
  }
  sent[kind] = told[kind].length;
  sent.frames += 1;
  const { id, attempt } = told;
  return isPlain
    ? {
        kind: 'StreamingDeltaEvent',
        ...identity(),
        source: 'agent',
        [kind === 'text' ? 'content' : 'reasoning_content']: content,
      }
    : { type: 'delta', item_id: id, attempt, order: sent.frames - 1, kind, content };
}

function identity(): EventIdentity {
  return { id: randomUUID(), timestamp: nextTimestamp(undefined, Date.now()) };
}
