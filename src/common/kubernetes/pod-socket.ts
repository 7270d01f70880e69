import { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import { type ApiServer } from './api-server.js';

/** One byte says which stream a frame belongs to. */
const PROTOCOL = 'v4.channel.k8s.io';
const DATA_CHANNEL = 0;
const ERROR_CHANNEL = 1;
/** The first frame of each channel holds the port's number. */
const PORT_BYTES = 2;
const MAX_ERROR_TEXT = 500;

/** A port of a container, as the API server reaches it. */
export interface PodPort {
  namespace: string;
  pod: string;
  port: number;
}

/**
 * Opens a connection to a port of a pod through the API server (`pods/portforward`), for a service that does not reach the
 * addresses of pods.
 *
 * @throws ApiServerError
 */
export async function connectToPod(api: ApiServer, { namespace, pod, port }: PodPort): Promise<Socket> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/portforward`;
  return new PodSocket(await api.webSocket(path, [PROTOCOL], { ports: port }));
}

/**
 * A connection whose bytes travel in frames of a WebSocket. It is a socket without a handle, so that the HTTP clients take
 * it for what it is: an open connection.
 */
class PodSocket extends Socket {
  readonly #frames: WebSocket;
  /** Channels whose first frame has yet to come. */
  readonly #unopened = new Set([DATA_CHANNEL, ERROR_CHANNEL]);

  constructor(frames: WebSocket) {
    super();
    this.#frames = frames;
    // Before the caller listens; `close` follows each error.
    this.on('error', () => undefined);
    frames.binaryType = 'nodebuffer';
    frames.on('message', (data) => this.#receive(data));
    frames.on('error', (error) => this.destroy(error));
    frames.once('close', () => this.push(null));
    this.once('close', () => frames.terminate());
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

  /** There are no half-closed connections on this way. */
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
    this.#frames.send(Buffer.concat([Buffer.of(DATA_CHANNEL), bytes]), (error) => done(error));
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
      this.destroy(new Error(bytes.toString('utf8').slice(0, MAX_ERROR_TEXT)));
    } else if (channel === DATA_CHANNEL) {
      this.#noteActivity();
      if (!this.push(bytes)) {
        this.#frames.pause();
      }
    }
  }

  /** Begins the socket's timeout again, as the handle of another socket would. */
  #noteActivity(): void {
    if (this.timeout !== undefined && this.timeout > 0) {
      this.setTimeout(this.timeout);
    }
  }
}
