import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { RawData, WebSocket } from 'ws';
import { type ApiServer } from './api-server.js';

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

export interface PodPort {
  namespace: string;
  pod: string;
  port: number;
}

/** Connects to a pod's port through the API server (`pods/portforward`). @throws ApiServerError */
export async function connectToPod(api: ApiServer, { namespace, pod, port }: PodPort): Promise<Socket> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/portforward`;
  const open = (): Promise<WebSocket> => api.webSocket(path, [PROTOCOL], { ports: port });
  return new PodSocket(await open(), open);
}

/** A socket without a handle over frames of a WebSocket; HTTP clients take it for an open connection. */
class PodSocket extends Socket {
  #frames: WebSocket;
  readonly #open: () => Promise<WebSocket>;
  #unopened = new Set([DATA_CHANNEL, ERROR_CHANNEL]);
  /** Kept for another tunnel; null after the first response, or when it was too much to keep. */
  #sent: Buffer[] | null = [];
  #attempts = 1;

  constructor(frames: WebSocket, open: () => Promise<WebSocket>) {
    super();
    this.#frames = frames;
    this.#open = open;
    // For errors before the caller listens; `close` follows each.
    this.on('error', () => undefined);
    this.once('close', () => this.#frames.terminate());
    this.#listen(frames);
  }

  #listen(frames: WebSocket): void {
    frames.binaryType = 'nodebuffer';
    frames.on('message', (data) => {
      if (frames === this.#frames) {
        this.#receive(data);
      }
    });
    frames.on('error', (error) => (frames === this.#frames ? this.destroy(error) : undefined));
    frames.once('close', () => (frames === this.#frames ? this.push(null) : undefined));
  }

  async #repeat(sent: readonly Buffer[]): Promise<void> {
    const former = this.#frames;
    this.#attempts += 1;
    this.#unopened = new Set([DATA_CHANNEL, ERROR_CHANNEL]);
    await delay(ATTEMPT_PAUSE_MS);
    const frames = await this.#open();
    this.#frames = frames;
    former.terminate();
    if (this.destroyed) {
      frames.terminate();
      return;
    }
    this.#listen(frames);
    sent.forEach((bytes) => frames.send(Buffer.concat([Buffer.of(DATA_CHANNEL), bytes])));
    frames.resume();
  }

  override _read(): void {
    this.#frames.resume();
  }

  override _write(
    chunk: Buffer | string,
    encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
    this.#send(bytes, done);
  }

  override _writev(
    chunks: { chunk: Buffer | string; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    const parts = chunks.map(({ chunk, encoding }) =>
      typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk,
    );
    this.#send(Buffer.concat(parts), done);
  }

  /** Port forwarding has no half-closed connections. */
  override _final(done: (error?: Error | null) => void): void {
    this.#frames.close();
    done();
  }

  /** A socket without a handle would wait for one. */
  override ref(): this {
    return this;
  }

  override unref(): this {
    return this;
  }

  #send(bytes: Buffer, done: (error?: Error | null) => void): void {
    this.#noteActivity();
    this.#sent?.push(bytes);
    if (this.#sent !== null && this.#sent.reduce((sum, { length }) => sum + length, 0) > MAX_REPEATED_BYTES) {
      this.#sent = null;
    }
    // A tunnel that has closed is about to be replaced, or its end is reported another way.
    this.#frames.send(Buffer.concat([Buffer.of(DATA_CHANNEL), bytes]), (error) =>
      done(this.#sent === null ? error : null),
    );
  }

  #receive(data: RawData): void {
    if (!Buffer.isBuffer(data)) {
      this.destroy(new Error('the tunnel sent no bytes'));
      return;
    }
    const [channel] = data;
    const isFirst = channel !== undefined && this.#unopened.delete(channel);
    const bytes = data.subarray(isFirst ? 1 + PORT_BYTES : 1);
    if (bytes.length === 0) {
      return;
    }
    if (channel === ERROR_CHANNEL) {
      const text = bytes.toString('utf8').slice(0, MAX_ERROR_TEXT);
      if (this.#sent === null || this.#attempts >= MAX_ATTEMPTS || !FORMER_POD.test(text)) {
        this.destroy(new Error(text));
        return;
      }
      // The end of the old tunnel means nothing for this connection.
      this.#frames.removeAllListeners('close');
      this.#repeat(this.#sent).catch((error: Error) => this.destroy(error));
    } else if (channel === DATA_CHANNEL) {
      this.#sent = null;
      this.#noteActivity();
      if (!this.push(bytes)) {
        this.#frames.pause();
      }
    }
  }

  /** The handle of an ordinary socket restarts the idle timeout by itself. */
  #noteActivity(): void {
    if (this.timeout !== undefined && this.timeout > 0) {
      this.setTimeout(this.timeout);
    }
  }
}
