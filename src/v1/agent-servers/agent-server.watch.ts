import { WebSocket } from 'ws';
import type { AgentServerTarget } from './agent-server.http.js';

const HANDSHAKE_TIMEOUT_MS = 5_000;
const PING_MS = 20_000;
/** As large as a page of events may be: a frame holds one of them. */
const MAX_FRAME_BYTES = 128 * 1024 * 1024;

export interface WatchListener {
  /** From now on nothing is missed. */
  opened: () => void;
  /** The conversation's log has something new, or its state is another. */
  changed: () => void;
  /** Called once, also when there was no connection at all; nothing is called after it. */
  closed: () => void;
}

/**
 * Listens at an agent server's socket of one conversation. Frames say that there is something, not what: the log is
 * read through the same requests that read it after a break, so that there is one way in which events arrive.
 */
export class AgentServerWatch {
  private readonly socket: WebSocket;
  private readonly pings: NodeJS.Timeout;
  private answered = true;
  private ended = false;

  constructor(
    target: AgentServerTarget,
    conversationId: string,
    private readonly listener: WatchListener,
  ) {
    const address = `${target.address.replace(/^http/, 'ws')}/sockets/events/${encodeURIComponent(conversationId)}`;
    this.socket = new WebSocket(address, {
      headers: { 'X-Session-API-Key': target.sessionKey },
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MAX_FRAME_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
    });
    this.socket.on('open', () => this.tell(listener.opened));
    this.socket.on('message', () => this.tell(listener.changed));
    this.socket.on('pong', () => {
      this.answered = true;
    });
    // A 'close' follows every error.
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.end());
    this.pings = setInterval(() => this.ping(), PING_MS);
    this.pings.unref();
  }

  /** Ends it; `closed` is not called. */
  close(): void {
    this.ended = true;
    clearInterval(this.pings);
    this.socket.terminate();
  }

  private tell(call: () => void): void {
    if (!this.ended) {
      call();
    }
  }

  private end(): void {
    clearInterval(this.pings);
    if (!this.ended) {
      this.ended = true;
      this.listener.closed();
    }
  }

  private ping(): void {
    if (this.socket.readyState !== WebSocket.OPEN) {
      return;
    }
    if (this.answered) {
      this.answered = false;
      this.socket.ping();
    } else {
      this.socket.terminate();
    }
  }
}
