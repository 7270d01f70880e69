import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import path from 'node:path';
import { headOf } from '../../support/held-sockets.js';
import { startListening, stopServer } from '../../support/start-listening.js';

const TYPES: Record<string, string> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
const OF_SERVICE = /^\/(?:api|sockets|oauth|health|ready|alive|server_info)(?:[/?]|$)/;

/**
 * The built files of a single-page application with the service behind the same origin, as a reverse proxy would serve
 * them. For applications that cannot be told a key, it adds one.
 */
export class Site {
  private target: { url: URL; key: string | null } | null = null;

  private constructor(
    private readonly server: Server,
    private readonly folder: string,
    /** `http://127.0.0.1:PORT`. */
    readonly origin: string,
  ) {}

  static async open(folder: string): Promise<Site> {
    const server = createServer();
    const port = await startListening(server);
    const site = new Site(server, folder, `http://127.0.0.1:${port}`);
    server.on('request', (incoming, response) => site.serve(incoming, response));
    server.on('upgrade', (incoming, socket, head) => site.upgrade(incoming, socket, head));
    return site;
  }

  /**
   * Passes requests for the API on from now on.
   *
   * @param key sent with each of them; null: the application sends its own
   */
  connect(url: string, key: string | null): void {
    this.target = { url: new URL(url), key };
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }

  private serve(incoming: IncomingMessage, response: ServerResponse): void {
    if (OF_SERVICE.test(incoming.url ?? '')) {
      this.pass(incoming, response);
      return;
    }
    this.send(incoming, response).catch((error: unknown) => response.destroy(asError(error)));
  }

  private async send(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(incoming.url ?? '/', this.origin);
    const wanted = path.join(this.folder, path.normalize(decodeURIComponent(pathname)));
    const isFile = (await stat(wanted).catch(() => null))?.isFile() === true;
    if (!isFile && path.extname(pathname) !== '') {
      response.writeHead(404).end();
      return;
    }
    const file = isFile ? wanted : path.join(this.folder, 'index.html');
    response.writeHead(200, {
      'Content-Type': TYPES[path.extname(file)] ?? 'application/octet-stream',
    });
    createReadStream(file).pipe(response);
  }

  private pass(incoming: IncomingMessage, response: ServerResponse): void {
    const outgoing = this.ask(incoming);
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => {
      if (response.headersSent) {
        response.destroy();
      } else {
        response.writeHead(502).end();
      }
    });
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  private upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const outgoing = this.ask(incoming);
    const drop = () => {
      socket.destroy();
      outgoing.destroy();
    };
    socket.on('error', drop);
    outgoing.on('error', drop);
    outgoing.on('upgrade', (answer, upstream, rest) => {
      upstream.on('error', drop);
      socket.write(headOf(answer));
      socket.write(rest);
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    outgoing.on('response', (answer) => {
      socket.end(headOf(answer));
    });
    outgoing.end();
  }

  private ask({ method, url: target, headers }: IncomingMessage) {
    const { url, key } = this.target ?? { url: new URL('http://127.0.0.1:9'), key: null };
    return request({
      host: url.hostname,
      port: url.port,
      method,
      path: target,
      headers: { ...headers, host: url.host, ...(key !== null && { 'x-session-api-key': key }) },
    });
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
