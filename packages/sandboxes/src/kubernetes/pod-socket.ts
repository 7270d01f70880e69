import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { PodPort } from '../sandbox-backend.js';
import type { ApiServer } from './api-server.js';

/** One byte says which stream a frame belongs to. */
const PROTOCOL = 'v4.channel.k8s.io';
const DATA_CHANNEL = 0;
const ERROR_CHANNEL = 1;
/** The first frame of each channel holds the port's number. */
const PORT_BYTES = 2;
const MAX_ERROR_TEXT = 500;
// The node may look up the ended pod that had the name before. No byte has arrived then, so another tunnel gets the
// same bytes.
const FORMER_POD = /network namespace for sandbox .* is closed|sandbox .* (is not running|not found)/;
const MAX_ATTEMPTS = 12;
const ATTEMPT_PAUSE_MS = 50;
const MAX_REPEATED_BYTES = 256 * 1024;

interface Chunk {
  chunk: Buffer | string;
  encoding: BufferEncoding;
}

type WriteDone = (error?: Error | null) => void;

/** Connects to a pod's port through the API server (`pods/portforward`). @throws ApiServerError */
export async function connectToPod(api: ApiServer, { namespace, pod, port }: PodPort): Promise<Socket> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/portforward`;
  const open = (): Promise<WebSocket> => api.webSocket(path, [PROTOCOL], { ports: port });
  return new PodSocket(await open(), open);
}

/**
 * A socket without a handle over frames of a WebSocket; HTTP clients take it for an open connection. The PortForward of
 * the official client has no back-pressure and hides errors (docs/adr/0058).
 */
class PodSocket extends Socket {
  private frames: WebSocket;
  private unopened = new Set([DATA_CHANNEL, ERROR_CHANNEL]);
  /** Kept for another tunnel; null after the first response, or when it was too much to keep. */
  private sent: Buffer | null = Buffer.alloc(0);
  private attempts = 1;

  constructor(
    frames: WebSocket,
    private readonly open: () => Promise<WebSocket>,
  ) {
    super();
    this.frames = frames;
    // Catches errors that occur before the caller listens; `close` follows each.
    this.on('error', () => undefined);
    this.once('close', () => this.frames.terminate());
    this.listen();
  }

  override _read(): void {
    this.frames.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: WriteDone): void {
    this.send([{ chunk, encoding }], done);
  }

  /** That of an ordinary socket writes to its handle. */
  override _writev(chunks: Chunk[], done: WriteDone): void {
    this.send(chunks, done);
  }

  /** Port forwarding has no half-closed connections. */
  override _final(done: WriteDone): void {
    this.frames.close();
    done();
  }

  /** A socket without a handle would wait for one. */
  override ref(): this {
    return this;
  }

  override unref(): this {
    return this;
  }

  private send(chunks: readonly Chunk[], done: WriteDone): void {
    const bytes = Buffer.concat(
      chunks.map(({ chunk, encoding }) => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk)),
    );
    this.noteActivity();
    if (this.sent !== null) {
      const isTooMuch = this.sent.length + bytes.length > MAX_REPEATED_BYTES;
      this.sent = isTooMuch ? null : Buffer.concat([this.sent, bytes]);
    }
    // A tunnel that has closed is about to be replaced, or its end is reported another way.
    this.frames.send(dataFrame(bytes), (error) => done(this.sent === null ? error : null));
  }

  private listen(): void {
    this.frames.on('message', (data: Buffer) => this.receive(data));
    this.frames.on('error', (error) => this.destroy(error));
    this.frames.once('close', () => this.push(null));
  }

  private receive(data: Buffer): void {
    const [channel = ERROR_CHANNEL] = data;
    const bytes = data.subarray(this.unopened.delete(channel) ? 1 + PORT_BYTES : 1);
    if (bytes.length === 0) {
      return;
    }
    if (channel === ERROR_CHANNEL) {
      const text = bytes.toString('utf8').slice(0, MAX_ERROR_TEXT);
      if (this.sent === null || this.attempts >= MAX_ATTEMPTS || !FORMER_POD.test(text)) {
        this.destroy(new Error(text));
      } else {
        this.repeat().catch((error: Error) => this.destroy(error));
      }
    } else {
      this.sent = null;
      this.noteActivity();
      if (!this.push(bytes)) {
        this.frames.pause();
      }
    }
  }

  private async repeat(): Promise<void> {
    // The end of the old tunnel means nothing for this connection.
    this.frames.removeAllListeners().on('error', () => undefined);
    this.frames.terminate();
    this.attempts += 1;
    this.unopened = new Set([DATA_CHANNEL, ERROR_CHANNEL]);
    await delay(ATTEMPT_PAUSE_MS);
    this.frames = await this.open();
    if (this.destroyed || this.sent === null) {
      this.frames.terminate();
      throw new Error('the tunnel cannot be repeated');
    }
    this.listen();
    this.frames.send(dataFrame(this.sent));
    this.frames.resume();
  }

  /** The handle of an ordinary socket restarts the idle timeout by itself. */
  private noteActivity(): void {
    if (this.timeout !== undefined && this.timeout > 0) {
      this.setTimeout(this.timeout);
    }
  }
}

function dataFrame(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(DATA_CHANNEL), bytes]);
}
