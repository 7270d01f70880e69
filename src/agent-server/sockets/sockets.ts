import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { BashCommands } from '../bash/bash-commands.js';
import { bashRequestSchema } from '../bash/bash-routes.js';
import type { Conversation } from '../conversations/conversation.js';
import type { Conversations } from '../conversations/conversations.js';
import { messageSchema } from '../conversations/schemas.js';
import type { EventIdentity, EventLog } from '../event-log.js';
import { HttpError, InvalidRequestError, parseRequest } from '../http/http-errors.js';
import type { SessionKeys } from '../http/front-door.js';
import { log, describeFailure } from '../log.js';
import { errorFrame, isAuthFrame, keyInFrame, parseFrame, stateFrame } from './frames.js';
import { Inbox, CLOSE, Subscriber } from './subscriber.js';
import {
  type SocketLimits,
  firstPosition,
  parseSocketRequest,
  type SocketRequest,
} from './socket-request.js';

const MAX_FRAME_BYTES = 16 * 1024 * 1024;
const BASH = 'bash';

export interface SocketsOptions {
  conversations: Conversations;
  commands: BashCommands;
  keys: SessionKeys;
  limits: SocketLimits;
  /** Told when a user did something. */
  touch: () => void;
}

/** What is told beside the log. */
interface Listener {
  sendBeside(frame: () => string): void;
}

/** `/sockets/events/{id}` and `/sockets/bash-events`. */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES });
  readonly #listeners = new Map<string, Map<WebSocket, Listener>>();
  /** Clients that have not answered the last ping. */
  readonly #silent = new WeakSet<WebSocket>();
  readonly #pings: NodeJS.Timeout;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#pings = setInterval(() => this.#ping(), options.limits.pingMs);
    this.#pings.unref();
  }

  /** Tells clients what happens to conversations besides what is in their logs. */
  watch(): void {
    this.#options.conversations.watch({
      added: (conversation) => {
        conversation.log.onAppend((event) => {
          // After a run clients wait for its last word: the whole state, once all else was told.
          if (event.kind === 'ConversationStateUpdateEvent' && event.key === 'execution_status') {
            this.#tellState(conversation);
          }
        });
      },
      changed: () => undefined,
      removed: ({ id }) => this.#drop(id),
    });
  }

  /** Ends all sockets. */
  close(): void {
    clearInterval(this.#pings);
    for (const socket of this.#server.clients) {
      socket.close(CLOSE.GOING_AWAY, 'The server stops');
    }
  }

  upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const wanted = parseSocketRequest(request);
    if (wanted === null) {
      stream.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    // Accepted first: a browser learns the reason of a refusal only from a close code.
    this.#server.handleUpgrade(request, stream, head, (socket) => {
      socket.on('error', () => socket.terminate());
      socket.on('pong', () => this.#silent.delete(socket));
      this.#serve(socket, new Inbox(socket), wanted).catch((error: unknown) => {
        log('error', 'a socket failed', { reason: describeFailure(error).message });
        socket.close(CLOSE.FAILED);
      });
    });
  }

  #tellState(conversation: Conversation): void {
    this.#listeners.get(conversation.id)?.forEach((listener) => {
      listener.sendBeside(() => stateFrame(conversation.info()));
    });
  }

  #drop(conversationId: string): void {
    const sockets = [...(this.#listeners.get(conversationId)?.keys() ?? [])];
    sockets.forEach((socket) => socket.close(CLOSE.UNKNOWN, 'Conversation deleted'));
  }

  async #serve(socket: WebSocket, inbox: Inbox, wanted: SocketRequest): Promise<void> {
    if (!(await this.#isAllowed(inbox, wanted.key))) {
      socket.close(CLOSE.AUTH_FAILED, 'Authentication failed');
      return;
    }
    const { conversations, commands, limits } = this.#options;
    if (wanted.conversationId === null) {
      const listener = this.#subscribe(socket, BASH, commands.log, wanted, null);
      await this.#receive(inbox, listener, async (message) => {
        await commands.start(parseRequest(bashRequestSchema, 'body', message));
      });
      return;
    }
    const conversation = conversations.find(wanted.conversationId);
    if (conversation === undefined) {
      socket.close(CLOSE.UNKNOWN, 'Conversation not found');
    } else if ((this.#listeners.get(conversation.id)?.size ?? 0) >= limits.maxSubscribers) {
      socket.close(CLOSE.TRY_LATER, 'Too many subscribers');
    } else {
      const first = (): ReturnType<typeof stateFrame> => stateFrame(conversation.info());
      const listener = this.#subscribe(socket, conversation.id, conversation.log, wanted, first);
      await this.#receive(inbox, listener, async (message) => {
        await conversation.addMessage({ ...parseRequest(messageSchema, 'body', message), run: true });
      });
    }
  }

  async #isAllowed(inbox: Inbox, key: string | undefined): Promise<boolean> {
    const { keys, limits } = this.#options;
    if (keys.isOpen || key !== undefined) {
      return keys.accepts(key);
    }
    return keys.accepts(keyInFrame((await inbox.next(limits.authTimeoutMs)) ?? ''));
  }

  #subscribe<E extends EventIdentity>(
    socket: WebSocket,
    name: string,
    events: EventLog<E>,
    wanted: SocketRequest,
    first: (() => string) | null,
  ): Listener {
    const from = firstPosition(events.entries, wanted.resend);
    const { stallMs } = this.#options.limits;
    const subscriber = new Subscriber({ socket, log: events, from, first, stallMs });
    const listeners = this.#listeners.get(name) ?? new Map<WebSocket, Listener>();
    this.#listeners.set(name, listeners.set(socket, subscriber));
    socket.once('close', () => {
      listeners.delete(socket);
      if (listeners.size === 0) {
        this.#listeners.delete(name);
      }
    });
    return subscriber;
  }

  /** Carries out what the client sends, in order, until it is gone. */
  async #receive(
    inbox: Inbox,
    listener: Listener,
    carryOut: (message: unknown) => Promise<void>,
  ): Promise<void> {
    for (let frame = await inbox.next(); frame !== null; frame = await inbox.next()) {
      const message = parseFrame(frame);
      // Some clients authenticate twice, in the address and in a frame.
      if (!isAuthFrame(message)) {
        this.#options.touch();
        try {
          await carryOut(message);
        } catch (error) {
          const { code, detail } = toFailure(error);
          listener.sendBeside(() => errorFrame(code, detail));
        }
      }
    }
  }

  #ping(): void {
    for (const socket of this.#server.clients) {
      if (this.#silent.has(socket)) {
        socket.terminate();
      } else {
        this.#silent.add(socket);
        socket.ping();
      }
    }
  }
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
  log('error', 'a frame could not be carried out', {
    reason: describeFailure(error).message,
  });
  return { code: 'InternalError', detail: 'The message could not be carried out.' };
}
