import { WebSocket } from 'ws';
import { type AgentServerTarget, requestOrigin, requireSandboxAddress } from './sandbox-address.js';
import { connectionOptions } from './sandbox-connection.js';

const HANDSHAKE_TIMEOUT_MS = 5_000;
const PING_INTERVAL_MS = 20_000;
/** The limit of a page of events, because a frame holds one of them. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;
/** Frames that are taken in a row. A frame only signals, so of a flood the rest may wait in the sender's memory. */
const MAX_FRAMES = 200;
const FLOOD_PAUSE_MS = 200;
/** Bytes of our own that a server did not read, above which its pings get no response. */
const MAX_UNREAD_BYTES = 64 * 1024;

export interface WatchListener {
  /** From now on nothing is missed. */
  opened: () => void;
  /** The conversation's log has something new, or its state has changed. */
  changed: () => void;
  /** Called once, even if there was no connection at all; nothing is called after it. */
  closed: () => void;
}

/**
 * Listens on an agent server's socket of one conversation. A frame only signals that something is new: the log itself is
 * read through the same requests that read it after a disconnect, so that events arrive in one way only.
 */
export class AgentServerWatch {
  private readonly socket: WebSocket;
  private readonly pings: NodeJS.Timeout;
  private frames = 0;
  private resumption: NodeJS.Timeout | undefined;
  private pongReceived = true;
  private ended = false;

  /** @throws SandboxAddressError */
  constructor(
    target: AgentServerTarget,
    conversationId: string,
    private readonly listener: WatchListener,
  ) {
    const address = requireSandboxAddress(target.address);
    const origin = requestOrigin(address).replace(/^http/, 'ws');
    this.socket = new WebSocket(`${origin}/sockets/events/${encodeURIComponent(conversationId)}`, {
      ...(address.kind !== 'tcp' && connectionOptions(address)),
      headers: { 'X-Session-API-Key': target.sessionKey },
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MAX_FRAME_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
      // One pong per ping would fill our memory when the server sends pings and reads nothing.
      autoPong: false,
    });
    this.socket.on('open', () => this.notify(listener.opened));
    this.socket.on('message', () => {
      this.notify(listener.changed);
      this.slowDown();
    });
    this.socket.on('ping', () => {
      if (this.socket.bufferedAmount < MAX_UNREAD_BYTES) {
        this.socket.pong();
      }
      this.slowDown();
    });
    this.socket.on('pong', () => {
      this.pongReceived = true;
    });
    // A 'close' follows every error.
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.end());
    this.pings = setInterval(() => this.ping(), PING_INTERVAL_MS);
    this.pings.unref();
  }

  /** Closes the socket without calling `closed`. */
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

  /** Reads no more for a moment after many frames, so that nobody else waits for this server. */
  private slowDown(): void {
    this.frames += 1;
    if (this.frames < MAX_FRAMES || this.resumption !== undefined || this.ended) {
      return;
    }
    this.socket.pause();
    this.resumption = setTimeout(() => {
      this.frames = 0;
      this.resumption = undefined;
      this.socket.resume();
    }, FLOOD_PAUSE_MS).unref();
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
    // Of a quiet time, the next frames are no flood.
    this.frames = 0;
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
