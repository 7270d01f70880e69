import { hash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startListening, stopServer } from '../support/start-listening.js';
import {
  type PreparationLine,
  SandboxBackendError,
  type SandboxBackendKind,
  SandboxBackend,
  type SandboxExit,
  type SandboxFacts,
  type SandboxIsolation,
  type SandboxLaunch,
  type WarmStarts,
} from '@slipway/sandboxes/sandbox-backend.js';

/** One sandbox of the fake machine. */
export interface ScriptedBox {
  launch: SandboxLaunch;
  /** It has its session key. */
  assigned: boolean;
  server: Server | null;
  exit: SandboxExit | null;
  createdAt: number;
  /** How many times its program was started. */
  starts: number;
  /** What its agent server reports. */
  idleSeconds: number;
  uptimeSeconds: number;
  /** Whether a conversation runs; null makes the answer a failure. */
  conversationRuns: boolean | null;
  log: string;
}

/** What happens at the next starts. */
export interface Script {
  /** They fail with this message. */
  failure: string | null;
  /** The program ends at once with this exit. */
  exit: SandboxExit | null;
  /** The program runs but never responds. */
  unresponsive: boolean;
  /** They wait for it. */
  gate: Promise<void> | null;
  /** Lines of progress that they report first. */
  progress: string[];
}

const DEFAULT_SCRIPT: Script = { failure: null, exit: null, unresponsive: false, gate: null, progress: [] };

/**
 * A machine for sandboxes that follows the test's script: agent servers are tiny real HTTP servers. Several applications
 * may share it, as processes of one host do.
 */
export class ScriptedSandboxBackend extends SandboxBackend {
  readonly boxes = new Map<string, ScriptedBox>();
  override readonly warm: WarmStarts = {
    fingerprint: async (template) =>
      template.program.kind === 'native' ? hash('sha256', JSON.stringify(template)) : null,
    start: async (launch, signal) => {
      this.calls.push(`warm ${launch.id}`);
      await this.run({ ...launch, sessionKey: '' }, signal);
    },
  };

  /** Calls in order: `start ID`, `pause ID` … */
  readonly calls: string[] = [];
  script: Script = { ...DEFAULT_SCRIPT };
  /** What it reports of sandboxes that say where they are themselves, by id. */
  readonly reported = new Map<string, string>();
  /** Sandboxes in whose place something else takes room, until they are paused. */
  readonly replaced = new Set<string>();
  /** Makes `pause`, `remove` and `list` fail with this message. */
  broken: string | null = null;
  /** `pause` waits for it. */
  pauseGate: Promise<void> | null = null;
  /** Sentences that each start reports as shortfalls. */
  shortfalls: string[] = [];
  /** Why sandboxes have no egress proxy; null: they can have one. */
  obstacle: string | null = 'the machine of this test has no egress proxy';

  constructor(
    readonly kind: SandboxBackendKind = 'process',
    readonly isolation: SandboxIsolation = 'bwrap',
  ) {
    super();
  }

  override proxyObstacle(): string | null {
    return this.obstacle;
  }

  override async prepare(): Promise<PreparationLine[]> {
    return [];
  }

  override async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    this.calls.push(`start ${launch.id}`);
    await this.run(launch, signal);
  }

  override async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    this.calls.push(`resume ${launch.id}`);
    if (!this.boxes.has(launch.id)) {
      throw new SandboxBackendError('The files are gone.');
    }
    await this.run(launch, signal);
  }

  override async inspect(id: string): Promise<SandboxFacts> {
    const box = this.boxes.get(id);
    if (!box) {
      return { id, state: 'missing', address: null, ports: {}, exit: null, createdAt: null };
    }
    return {
      id,
      state: box.server ? 'running' : 'stopped',
      address: box.server ? (this.reported.get(id) ?? addressOf(box.server)) : null,
      // Programs that agents start respond like their server.
      ports: Object.fromEntries(
        Object.keys(box.server ? box.launch.ports : {}).map((name) => [
          name,
          box.server ? addressOf(box.server) : '',
        ]),
      ),
      exit: box.exit,
      createdAt: box.createdAt,
      ...(this.replaced.has(id) && { isReplaced: true }),
    };
  }

  override async logTail(id: string): Promise<string> {
    return this.boxes.get(id)?.log ?? '';
  }

  override async pause(id: string): Promise<void> {
    this.calls.push(`pause ${id}`);
    this.throwIfBroken();
    await this.pauseGate;
    this.replaced.delete(id);
    await this.end(id, null);
  }

  override async remove(id: string): Promise<void> {
    this.calls.push(`remove ${id}`);
    this.throwIfBroken();
    await this.end(id, null);
    this.boxes.delete(id);
  }

  override async list(): Promise<SandboxFacts[]> {
    this.throwIfBroken();
    return Promise.all([...this.boxes.keys()].map((id) => this.inspect(id)));
  }

  override async disk(): Promise<null> {
    return null;
  }

  /** Ends the program, as if by itself. */
  async end(id: string, exit: SandboxExit | null): Promise<void> {
    const box = this.boxes.get(id);
    if (box?.server) {
      const { server } = box;
      box.server = null;
      box.exit = exit;
      await stopServer(server);
    }
  }

  /** Moves its agent server to another address. */
  async move(id: string): Promise<string> {
    const box = this.box(id);
    const old = box.server;
    // The new one listens before the old one closes, so that it runs at every moment.
    box.server = await serve(box, false);
    old?.closeAllConnections();
    old?.close();
    return addressOf(box.server);
  }

  /** Starts a sandbox that has no row. */
  async startUnknown(launch: SandboxLaunch, createdAt: number): Promise<void> {
    await this.run(launch, new AbortController().signal, createdAt);
  }

  box(id: string): ScriptedBox {
    const box = this.boxes.get(id);
    if (!box) {
      throw new Error(`no sandbox ${id} here`);
    }
    return box;
  }

  callsOf(id: string): string[] {
    return this.calls.filter((call) => call.endsWith(id)).map((call) => call.split(' ', 1)[0] ?? '');
  }

  async close(): Promise<void> {
    await Promise.all([...this.boxes.keys()].map((id) => this.end(id, null)));
  }

  private async run(launch: SandboxLaunch, signal: AbortSignal, createdAt = Date.now()): Promise<void> {
    const { failure, exit, unresponsive, gate, progress } = this.script;
    progress.forEach((line) => launch.onProgress?.(line));
    this.shortfalls.forEach((sentence) => launch.onShortfall?.(sentence));
    await waitFor(gate, signal);
    if (failure !== null) {
      throw new SandboxBackendError(failure);
    }
    const box = this.boxes.get(launch.id) ?? {
      launch,
      assigned: false,
      server: null,
      exit: null,
      createdAt,
      starts: 0,
      idleSeconds: 1,
      uptimeSeconds: 1,
      conversationRuns: false,
      log: '',
    };
    this.boxes.set(launch.id, box);
    box.launch = launch;
    box.assigned = launch.sessionKey !== '';
    if (exit !== null) {
      box.exit = exit;
      box.log = 'it is broken\n';
      return;
    }
    if (!box.server) {
      box.starts += 1;
      box.server = await serve(box, unresponsive);
    }
  }

  private throwIfBroken(): void {
    if (this.broken !== null) {
      throw new SandboxBackendError(this.broken);
    }
  }
}

async function waitFor(gate: Promise<void> | null, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([gate, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serve(box: ScriptedBox, unresponsive: boolean): Promise<Server> {
  const server = createServer((request, response) => {
    if (!unresponsive) {
      respond(box, request, response);
    }
  });
  await startListening(server);
  return server;
}

function respond(box: ScriptedBox, request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'http://fake');
  const authorized = request.headers['x-session-api-key'] === box.launch.sessionKey;
  const bodies: Record<string, unknown> = {
    '/alive': { status: 'ok', assigned: box.assigned },
    '/server_info': { uptime: box.uptimeSeconds, idle_time: box.idleSeconds },
    ...(authorized &&
      box.conversationRuns !== null && {
        '/api/conversations/search': {
          items: box.conversationRuns ? [{ id: 'c', execution_status: 'running' }] : [],
          next_page_id: null,
        },
      }),
  };
  const body = bodies[pathname];
  response.statusCode = body === undefined ? (authorized ? 500 : 401) : 200;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body ?? { detail: 'no' }));
}
