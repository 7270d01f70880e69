import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import { jsonText } from '@slipway/common/json-access.js';
import { startListening, stopServer } from '../support/start-listening.js';

type Json = Record<string, unknown>;

/** One conversation of the server. */
interface FakeConversation {
  info: Json;
  events: Json[];
}

/**
 * The part of an agent server that reports conversations, over real HTTP and WebSockets. A test writes the logs and sets
 * what goes wrong.
 */
export class FakeConversationServer {
  /** The session key of its sandbox; every server has its own. */
  key: string = randomUUID();
  readonly conversations = new Map<string, FakeConversation>();
  /** Paths and queries of all requests for events, in order. */
  readonly reads: string[] = [];
  /** Methods and paths of all other requests than GET, in order. */
  readonly calls: string[] = [];
  /** Queries of all requests for the list of conversations, in order. */
  readonly lists: string[] = [];
  /** Seconds since its start. */
  uptime = 0;
  /** Faults of the next responses: a status, or no response at all. */
  readonly faults: ('hang' | 'reset' | number)[] = [];
  /** Statuses with which requests are refused, by method and path. */
  readonly refusals = new Map<string, number>();
  /** What a push answers, which our agent server can and the stock one cannot. */
  push: Json | null = null;
  /** Bodies of the requests to push. */
  readonly pushes: unknown[] = [];
  /** Responses wait for it. */
  gate: Promise<void> = Promise.resolve();
  /** Called right before a conversation's state is sent. */
  beforeState: () => void = () => undefined;
  /** Whether sockets are accepted and notified of new events. */
  socketsWork = true;
  /** Whether it sends linked frames to those who ask, as our agent server does and the stock one does not. */
  linksFrames = true;
  private readonly sockets = new WebSocketServer({ noServer: true });
  private readonly clients = new Set<{ id: string; socket: WebSocket; linked: boolean }>();

  private constructor(private readonly server: Server) {}

  static async start(): Promise<FakeConversationServer & { address: string }> {
    const server = createServer();
    const fake = new FakeConversationServer(server);
    server.on('request', (request, response) => {
      void fake.gate.then(() => fake.respond(request, response));
    });
    server.on('upgrade', (request, stream, head) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fake');
      const id = /^\/sockets\/events\/([0-9a-f-]+)$/.exec(pathname)?.[1] ?? '';
      const linked = fake.linksFrames && searchParams.get('frames') === 'linked';
      if (!fake.socketsWork || request.headers['x-session-api-key'] !== fake.key) {
        stream.destroy();
        return;
      }
      fake.sockets.once('headers', (headers) => {
        if (linked) {
          headers.push('X-Event-Frames: linked');
        }
      });
      fake.sockets.handleUpgrade(request, stream, head, (socket) => {
        const client = { id, socket, linked };
        fake.clients.add(client);
        socket.on('close', () => fake.clients.delete(client));
      });
    });
    return Object.assign(fake, { address: `http://127.0.0.1:${await startListening(server)}` });
  }

  /** The number of open sockets. */
  get watchers(): number {
    return this.clients.size;
  }

  open(id: string, info: Json = {}, events: Json[] = []): void {
    this.conversations.set(id, { info: { id, execution_status: 'idle', title: null, ...info }, events });
  }

  /** Appends an event and notifies the sockets; returns its id. */
  append(id: string, event: Json = {}): string {
    const entry: Json = {
      kind: 'MessageEvent',
      id: randomUUID(),
      timestamp: new Date().toISOString().replace('Z', '000'),
      source: 'agent',
      llm_message: { role: 'assistant', content: [{ type: 'text', text: 'hello' }] },
      activated_skills: [],
      extended_content: [],
      ...event,
    };
    const events = this.conversations.get(id)?.events ?? [];
    const after = events.at(-1)?.['id'] ?? null;
    events.push(entry);
    this.sendFrame(id, (linked) => (linked ? { after, event: entry } : entry));
    return String(entry.id);
  }

  /** Tells the sockets that the state of a conversation has changed. */
  tellState(id: string): void {
    this.sendFrame(id, () => ({ kind: 'ConversationStateUpdateEvent', key: 'full_state', value: {} }));
  }

  /** Sends something to the sockets that is in no log. */
  sendFrame(id: string, frame: (linked: boolean) => unknown): void {
    for (const { id: watched, socket, linked } of this.clients) {
      if (watched === id && this.socketsWork) {
        socket.send(JSON.stringify(frame(linked)));
      }
    }
  }

  /** Drops the sockets, like a network that fails. */
  dropSockets(): void {
    this.clients.forEach(({ socket }) => socket.terminate());
  }

  async close(): Promise<void> {
    this.dropSockets();
    await stopServer(this.server);
  }

  private respond(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://fake');
    const [, id = '', rest = ''] = /^\/api\/conversations\/([^/]+)(.*)$/.exec(url.pathname) ?? [];
    const conversation = this.conversations.get(id);
    if (rest === '/events/search') {
      this.reads.push(url.pathname + url.search);
    }
    if (request.method !== 'GET') {
      this.calls.push(`${request.method} ${url.pathname}`);
    }
    const fault = this.refusals.get(`${request.method} ${url.pathname}`) ?? this.faults.shift();
    if (fault === 'hang') {
      return;
    }
    if (fault === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    const send = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (fault !== undefined) {
      send(fault, { detail: 'out of order' });
    } else if (request.headers['x-session-api-key'] !== this.key) {
      send(401, { detail: 'Unauthorized' });
    } else if (url.pathname === '/alive') {
      send(200, { status: 'ok' });
    } else if (url.pathname === '/server_info') {
      send(200, { uptime: this.uptime, idle_time: 0 });
    } else if (url.pathname === '/api/git/push' && this.push !== null) {
      void this.takePush(request, (push) => send(200, push));
    } else if (url.pathname === '/api/conversations/search') {
      this.lists.push(url.search);
      send(200, listPage([...this.conversations.values()], url.searchParams));
    } else if (!conversation) {
      send(404, { detail: 'Conversation not found' });
    } else if (rest === '/events/search') {
      send(200, page(conversation.events, url.searchParams));
    } else {
      this.beforeState();
      send(200, this.conversations.get(id)?.info);
    }
  }

  private async takePush(request: IncomingMessage, answer: (push: Json | null) => void): Promise<void> {
    this.pushes.push(JSON.parse(Buffer.concat(await request.toArray()).toString('utf8')));
    answer(this.push);
  }
}

/** The last one that was opened comes first. */
function listPage(
  all: FakeConversation[],
  query: URLSearchParams,
): { items: Json[]; next_page_id: string | null } {
  const infos = all.map(({ info }) => info).toReversed();
  const first = Math.max(
    0,
    infos.findIndex(({ id }) => id === query.get('page_id')),
  );
  const limit = Number(query.get('limit'));
  return { items: infos.slice(first, first + limit), next_page_id: jsonText(infos[first + limit], 'id') };
}

/** The page begins with the named event, or with the first one when that is unknown. */
function page(events: Json[], query: URLSearchParams): { items: Json[]; next_page_id: string | null } {
  const named = events.findIndex(({ id }) => id === query.get('page_id'));
  const first = Math.max(0, named);
  const limit = Number(query.get('limit'));
  return {
    items: events.slice(first, first + limit),
    next_page_id: jsonText(events[first + limit], 'id'),
  };
}
