import { on } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { LINKED_FRAMES } from '@slipway/agent-protocol/server.js';
import { within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, parseJson } from '@slipway/common/json-access.js';
import { messageSchema, toConversationId } from '@slipway/agent-protocol/conversation-schemas.js';
import type { SocketLimits } from '../command-line.js';
import type { BashCommands } from '../bash/bash-commands.js';
import { bashRequestSchema } from '../bash/bash-routes.js';
import { type Conversation, isStatusChange } from '../conversations/conversation.js';
import type { Conversations } from '../conversations/conversations.js';
import { type EventIdentity, type EventLog, normalizeTimestamp } from '../event-log.js';
import { HttpError, InvalidRequestError } from '../http/http-error.js';
import { parseRequest } from '../http/request-parsing.js';
import type { SessionKeys } from '../http/session-keys.js';
import { log } from '../observability.js';
import { CLOSE_CODES, errorEvent, type Framing, LogSubscriber, stateEvent } from './log-subscriber.js';

/** The limit of request bodies, because a frame may be a message too. */
const MAX_FRAME_BYTES = 7 * 1024 * 1024;
/** Sockets that have not sent a key yet: each may hold a frame in memory. */
const MAX_WITHOUT_KEY = 32;
/** Bytes that a client has not read, above which its pings get no response. */
const MAX_UNREAD_BYTES = 64 * 1024;
/**
 * Milliseconds. SDK clients take a full state as the end of their run only once they have read the answer to its request
 * (`_run_armed` in `remote_conversation.py` of openhands-sdk 1.58.2), and otherwise wait for half a minute.
 */
const ANSWERED_RUN_MS = 200;
const BASH_EVENTS = 'bash';
/** Parameter of a session that sends only what the agent is writing, even if its clients get answers as a whole. */
const DRAFTS = { parameter: 'drafts', value: 'only' };

export interface SocketServerOptions {
  conversations: Conversations;
  commands: BashCommands;
  keys: SessionKeys;
  sockets: SocketLimits;
  touch: () => void;
  /** Called when a client reads a conversation's log itself; no reports until the returned function is called. */
  withholdReports: (conversationId: string) => () => void;
}

type FrameReceiver = Pick<LogSubscriber<EventIdentity>, 'sendExtra'>;
type SubscriberOptions = ConstructorParameters<typeof LogSubscriber>[0];

export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    // One pong per ping would fill the memory when a client sends pings and reads nothing.
    autoPong: false,
  });
  #withoutKey = 0;
  readonly #listeners = new Map<string, Map<WebSocket, FrameReceiver>>();
  readonly #unresponsive = new WeakSet<WebSocket>();
  readonly #pings: NodeJS.Timeout;

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#server.on('headers', (headers, request) => {
      if (parseSocketRequest(request)?.framing === 'linked') {
        headers.push(`${LINKED_FRAMES.header}: ${LINKED_FRAMES.value}`);
      }
    });
    this.#pings = setInterval(() => this.#ping(), options.sockets.pingMs);
    this.#pings.unref();
    options.conversations.subscribe({
      added: (conversation) => {
        conversation.log.onAppend((event) => {
          // Clients take the full state as the end of a run, so it follows everything else, and a message sends none.
          if (isStatusChange(event) && (conversation.isRunning || event.value !== 'idle')) {
            this.#sendState(conversation);
          }
        });
        conversation.onRunWithoutWork(() => {
          setTimeout(() => this.#sendState(conversation), ANSWERED_RUN_MS).unref();
        });
      },
      removed: ({ id }) =>
        this.#listeners.get(id)?.forEach((_listener, socket) => {
          socket.close(CLOSE_CODES.UNKNOWN, 'Conversation deleted');
        }),
    });
  }

  close(): void {
    clearInterval(this.#pings);
    for (const socket of this.#server.clients) {
      socket.close(CLOSE_CODES.GOING_AWAY, 'The server stops');
    }
  }

  upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const requested = parseSocketRequest(request);
    if (requested === null) {
      stream.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    if (requested.key === undefined && !this.#options.keys.isOpen && this.#withoutKey >= MAX_WITHOUT_KEY) {
      stream.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    // Accepted before authentication: browsers learn the reason of a rejection only from a close code.
    this.#server.handleUpgrade(request, stream, head, (socket) => {
      socket.on('error', () => socket.terminate());
      socket.on('pong', () => this.#unresponsive.delete(socket));
      socket.on('ping', (data) => {
        if (socket.bufferedAmount < MAX_UNREAD_BYTES) {
          socket.pong(data);
        }
      });
      this.#serve(socket, framesOf(socket), requested).catch((error: unknown) => {
        log('error', 'failed to serve socket', { error: errorMessage(error) });
        socket.close(CLOSE_CODES.FAILED);
      });
    });
  }

  #sendState(conversation: Conversation): void {
    this.#listeners.get(conversation.id)?.forEach((listener) => {
      listener.sendExtra(() => stateEvent(conversation.info()));
    });
  }

  async #serve(socket: WebSocket, frames: ClientFrames, requested: SocketRequest): Promise<void> {
    if (!(await this.#isAuthenticated(frames, requested.key))) {
      socket.close(CLOSE_CODES.AUTH_FAILED, 'Authentication failed');
      return;
    }
    const { conversations, commands, sockets: limits } = this.#options;
    if (requested.conversationId === null) {
      const nothingMore = { first: null, draft: null };
      const listener = this.#subscribe(socket, BASH_EVENTS, commands.log, requested, nothingMore);
      await this.#receive(frames, listener, async (message) => {
        await commands.start(parseRequest(bashRequestSchema, 'body', message));
      });
      return;
    }
    const conversation = conversations.find(requested.conversationId);
    if (conversation === undefined) {
      socket.close(CLOSE_CODES.UNKNOWN, 'Conversation not found');
    } else if ((this.#listeners.get(conversation.id)?.size ?? 0) >= limits.maxSubscribers) {
      socket.close(CLOSE_CODES.TRY_LATER, 'Too many subscribers');
    } else {
      const { framing } = requested;
      // The service keeps what it follows, and drafts are not to be kept.
      const getsDrafts = framing === 'drafts' || (framing !== 'linked' && conversation.streamsAnswers);
      const listener = this.#subscribe(socket, conversation.id, conversation.log, requested, {
        first: framing === 'drafts' ? null : () => stateEvent(conversation.info()),
        draft: getsDrafts ? conversation.state.draft : null,
      });
      const { failure } = conversation;
      if (failure !== null && framing === 'plain' && requested.resend !== ALL) {
        // Clients show the reason of an error only if they see it happen, so it is sent to those that come later.
        listener.sendExtra(() => errorEvent(failure.code, failure.detail));
      }
      await this.#receive(frames, listener, async (message) => {
        await conversation.addMessage({ ...parseRequest(messageSchema, 'body', message), run: true });
      });
    }
  }

  async #isAuthenticated(frames: ClientFrames, key: string | undefined): Promise<boolean> {
    const { keys, sockets: limits } = this.#options;
    if (keys.isOpen || key !== undefined) {
      return keys.accepts(key);
    }
    this.#withoutKey += 1;
    try {
      const first = await within(limits.authTimeoutMs, frames.next());
      return keys.accepts(first === null || first.done ? undefined : keyInFrame(first.value));
    } finally {
      this.#withoutKey -= 1;
    }
  }

  #subscribe<E extends EventIdentity>(
    socket: WebSocket,
    name: string,
    events: EventLog<E>,
    requested: SocketRequest,
    more: Pick<SubscriberOptions, 'first' | 'draft'>,
  ): FrameReceiver {
    const { framing, resend } = requested;
    const from = firstPosition(events.entries, resend);
    const last = events.entries.length - 1;
    if (framing === 'session') {
      const range = {
        ...('position' in resend && resend !== NOTHING && { from_seq: resend.position - 1 }),
        ...(last >= 0 && { through_seq: last }),
      };
      socket.send(JSON.stringify({ type: 'sync', ...range }));
    }
    const { stallMs } = this.#options.sockets;
    const subscriber = new LogSubscriber({ socket, log: events, from, framing, stallMs, ...more });
    const listeners = this.#listeners.get(name) ?? new Map<WebSocket, FrameReceiver>();
    this.#listeners.set(name, listeners.set(socket, subscriber));
    const reported = framing === 'linked' ? this.#options.withholdReports(name) : null;
    socket.once('close', () => {
      reported?.();
      listeners.delete(socket);
      if (listeners.size === 0) {
        this.#listeners.delete(name);
      }
    });
    return subscriber;
  }

  async #receive(
    frames: ClientFrames,
    listener: FrameReceiver,
    execute: (message: unknown) => Promise<void>,
  ): Promise<void> {
    for await (const frame of frames) {
      const message = parseJson(frame);
      // Some clients authenticate twice, in the URL and in a frame.
      if (!isAuthFrame(message)) {
        this.#options.touch();
        try {
          await execute(message);
        } catch (error) {
          const { code, detail } = toFailure(error);
          listener.sendExtra(() => errorEvent(code, detail));
        }
      }
    }
  }

  #ping(): void {
    for (const socket of this.#server.clients) {
      if (this.#unresponsive.has(socket)) {
        socket.terminate();
      } else {
        this.#unresponsive.add(socket);
        socket.ping();
      }
    }
  }
}

type ClientFrames = AsyncGenerator<string, void>;

/** The frames of one client, one by one. While more than one waits, its socket is paused. */
function framesOf(socket: WebSocket): ClientFrames {
  return textsOf(on(socket, 'message', { close: ['close'], highWaterMark: 1, lowWaterMark: 1 }));
}

async function* textsOf(messages: AsyncIterable<unknown[]>): ClientFrames {
  try {
    for await (const [data] of messages) {
      yield String(data);
    }
  } catch {
    // The connection broke, so nothing follows.
  }
}

/** The key in a client's first frame, `{"type":"auth","session_api_key":"…"}`. */
function keyInFrame(frame: string): string | undefined {
  const message = parseJson(frame);
  const key = jsonAt(message, 'session_api_key');
  return isAuthFrame(message) && typeof key === 'string' ? key : undefined;
}

function isAuthFrame(message: unknown): boolean {
  return jsonAt(message, 'type') === 'auth';
}

function toFailure(error: unknown): { code: string; detail: string } {
  if (error instanceof InvalidRequestError) {
    const detail = error.problems
      .map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`.replace(/^: /, ''))
      .join('; ');
    return { code: 'InvalidMessage', detail };
  }
  if (error instanceof HttpError) {
    return { code: 'MessageRefused', detail: error.message };
  }
  log('error', 'failed to execute frame', { error: errorMessage(error) });
  return { code: 'InternalError', detail: 'The message could not be processed.' };
}

const BASE_URL = 'http://localhost';

interface SocketRequest {
  /** The conversation to stream; null for the events of bash commands. */
  conversationId: string | null;
  /** Key from the query or the header; if undefined, the first frame must have it. */
  key: string | undefined;
  framing: Framing;
  resend: Resend;
}

/** The place in the log to begin at. */
type Resend = { position: number } | { timestamp: string };

const ALL: Resend = { position: 0 };
/** A client wants what comes. */
const NOTHING: Resend = { position: Infinity };

/** @returns null if there is no socket at the address */
function parseSocketRequest(request: IncomingMessage): SocketRequest | null {
  const address = request.url ?? '/';
  // The HTTP parser accepts addresses such as `//` that the URL parser rejects.
  const url = URL.parse(address, BASE_URL);
  const [, path, name] =
    /^\/sockets\/(events|session|bash-events)(?:\/([^/]+))?\/?$/.exec(url?.pathname ?? '') ?? [];
  if (url === null || path === undefined || (path === 'bash-events') === (name !== undefined)) {
    return null;
  }
  const header = request.headers['x-session-api-key'];
  const onlyDrafts = url.searchParams.get(DRAFTS.parameter) === DRAFTS.value;
  const isLinked = url.searchParams.get(LINKED_FRAMES.parameter) === LINKED_FRAMES.value;
  return {
    // An id that is not a UUID is kept: no conversation has it, so the lookup fails.
    conversationId: name === undefined ? null : (toConversationId(name) ?? name),
    key: url.searchParams.get('session_api_key') ?? (typeof header === 'string' ? header : undefined),
    ...(path === 'session'
      ? {
          framing: onlyDrafts ? 'drafts' : 'session',
          resend: afterSequence(url.searchParams.get('after_seq')),
        }
      : { framing: isLinked ? 'linked' : 'plain', resend: resendOf(url.searchParams) }),
  };
}

/** Resends all if the text is no position: too much is better than too little. */
function afterSequence(text: string | null): Resend {
  const position = /^\d+$/.test(text ?? '') ? Number(text) + 1 : 0;
  return text === null ? NOTHING : { position };
}

function resendOf(query: URLSearchParams): Resend {
  const mode = query.get('resend_mode');
  if (mode === 'since') {
    const timestamp = normalizeTimestamp(query.get('after_timestamp') ?? '');
    return timestamp === null ? ALL : { timestamp };
  }
  return mode === 'all' || /^(true|1|yes|on)$/i.test(query.get('resend_all') ?? '') ? ALL : NOTHING;
}

function firstPosition(entries: readonly { timestamp: string }[], resend: Resend): number {
  const position =
    'position' in resend
      ? resend.position
      : entries.findIndex(({ timestamp }) => timestamp >= resend.timestamp);
  return position === -1 ? entries.length : Math.min(position, entries.length);
}
