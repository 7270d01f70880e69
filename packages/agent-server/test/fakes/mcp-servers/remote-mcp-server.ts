import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { startListening, stopServer } from '../../../../../test/support/start-listening.js';
import { sampleMcpServer } from './sample-mcp-server.js';

/** A tool server over HTTP: streamable at `/mcp`, with server-sent events at `/sse`. */
export class RemoteMcpServer {
  readonly requests: { path: string; headers: Record<string, unknown> }[] = [];
  readonly httpUrl: string;
  readonly sseUrl: string;
  private readonly server: Server;

  private constructor(server: Server, origin: string) {
    this.server = server;
    this.httpUrl = `${origin}/mcp`;
    this.sseUrl = `${origin}/sse`;
  }

  /** @param host the address that it listens on */
  static async start(host = '127.0.0.1'): Promise<RemoteMcpServer> {
    let self: RemoteMcpServer;
    const sessions = new Map<string, SSEServerTransport>();
    const streams = new Map<string, StreamableHTTPServerTransport>();
    const server = createServer((request, response) => {
      const path = new URL(request.url ?? '/', 'http://fake').pathname;
      self.requests.push({ path, headers: request.headers });
      const handled =
        path === '/mcp' ? streamable(streams, request, response) : eventStream(sessions, request, response);
      handled.catch(() => {
        if (!response.headersSent) {
          response.writeHead(500);
        }
        response.end();
      });
    });
    const port = await startListening(server, 0, host);
    self = new RemoteMcpServer(server, `http://${host}:${port}`);
    return self;
  }

  /** Breaks every connection, as a proxy that restarts. */
  dropConnections(): void {
    this.server.closeAllConnections();
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }
}

async function streamable(
  streams: Map<string, StreamableHTTPServerTransport>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const known = streams.get(String(request.headers['mcp-session-id']));
  if (known !== undefined) {
    await known.handleRequest(request, response);
    return;
  }
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => {
      streams.set(id, transport);
    },
  });
  await sampleMcpServer().connect(transport);
  await transport.handleRequest(request, response);
}

async function eventStream(
  sessions: Map<string, SSEServerTransport>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake');
  if (url.pathname === '/messages') {
    await sessions.get(url.searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response);
    return;
  }
  if (request.method !== 'GET') {
    response.writeHead(405).end();
    return;
  }
  const transport = new SSEServerTransport('/messages', response);
  sessions.set(transport.sessionId, transport);
  await sampleMcpServer().connect(transport);
}
