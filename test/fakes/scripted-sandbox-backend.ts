import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  SandboxBackendError,
  SandboxBackend,
  type SandboxExit,
  type SandboxFacts,
  type SandboxIsolation,
  type SandboxLaunch,
} from '../../src/v1/sandboxes/backends/sandbox-backend.js';

/** One sandbox of the fake machine. */
export interface ScriptedBox {
  launch: SandboxLaunch;
  server: Server | null;
  exit: SandboxExit | null;
  createdAt: number;
  /** How often its program was started. */
  starts: number;
  /** What its agent server says of itself. */
  idleSeconds: number;
  conversationRuns: boolean;
  log: string;
}

/** What the next starts do. */
export interface Script {
  /** Fails with this. */
  failure: string | null;
  /** The program ends at once, like this. */
  exit: SandboxExit | null;
  /** The program lives and answers nothing. */
  mute: boolean;
  /** Starts wait for it. */
  gate: Promise<void> | null;
  /** Lines of progress before anything else. */
  progress: string[];
}

const CALM: Script = { failure: null, exit: null, mute: false, gate: null, progress: [] };

/**
 * A machine for sandboxes that does what a test says: agent servers are tiny real HTTP servers. Several applications may
 * share it, as processes of one host do.
 */
export class ScriptedSandboxBackend extends SandboxBackend {
  readonly boxes = new Map<string, ScriptedBox>();
  /** Calls in their order: `start ID`, `pause ID` … */
  readonly calls: string[] = [];
  script: Script = { ...CALM };
  /** What `pause`, `remove` and `list` fail with. */
  broken: string | null = null;
  /** `pause` waits for it. */
  pauseGate: Promise<void> | null = null;
  /** What each start says it cannot have. */
  shortfalls: string[] = [];

  constructor(
    readonly kind: 'process' | 'docker' = 'process',
    readonly isolation: SandboxIsolation = 'bwrap',
  ) {
    super();
  }

  override async prepare(): Promise<string[]> {
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
      address: box.server ? addressOf(box.server) : null,
      // What agents start answers like their server.
      ports: Object.fromEntries(
        Object.keys(box.server ? box.launch.ports : {}).map((name) => [
          name,
          box.server ? addressOf(box.server) : '',
        ]),
      ),
      exit: box.exit,
      createdAt: box.createdAt,
    };
  }

  override async logTail(id: string): Promise<string> {
    return this.boxes.get(id)?.log ?? '';
  }

  override async pause(id: string): Promise<void> {
    this.calls.push(`pause ${id}`);
    this.fail();
    await this.pauseGate;
    await this.end(id, null);
  }

  override async remove(id: string): Promise<void> {
    this.calls.push(`remove ${id}`);
    this.fail();
    await this.end(id, null);
    this.boxes.delete(id);
  }

  override async list(): Promise<SandboxFacts[]> {
    this.fail();
    return Promise.all([...this.boxes.keys()].map((id) => this.inspect(id)));
  }

  override async disk(): Promise<null> {
    return null;
  }

  /** The program ends by itself. */
  async end(id: string, exit: SandboxExit | null): Promise<void> {
    const box = this.boxes.get(id);
    if (box?.server) {
      const { server } = box;
      box.server = null;
      box.exit = exit;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  /** Its agent server listens somewhere else from now on. */
  async move(id: string): Promise<string> {
    const box = this.box(id);
    const old = box.server;
    // At no moment it does not run.
    box.server = await serve(box, false);
    old?.closeAllConnections();
    old?.close();
    return addressOf(box.server);
  }

  /** Something that nobody's row knows. */
  async stranger(launch: SandboxLaunch, createdAt: number): Promise<void> {
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
    const { failure, exit, mute, gate, progress } = this.script;
    progress.forEach((line) => launch.onProgress?.(line));
    this.shortfalls.forEach((sentence) => launch.onShortfall?.(sentence));
    await until(gate, signal);
    if (failure !== null) {
      throw new SandboxBackendError(failure);
    }
    const box = this.boxes.get(launch.id) ?? {
      launch,
      server: null,
      exit: null,
      createdAt,
      starts: 0,
      idleSeconds: 1,
      conversationRuns: false,
      log: '',
    };
    this.boxes.set(launch.id, box);
    box.launch = launch;
    if (exit !== null) {
      box.exit = exit;
      box.log = 'it is broken\n';
      return;
    }
    if (!box.server) {
      box.starts += 1;
      box.server = await serve(box, mute);
    }
  }

  private fail(): void {
    if (this.broken !== null) {
      throw new SandboxBackendError(this.broken);
    }
  }
}

async function until(gate: Promise<void> | null, signal: AbortSignal): Promise<void> {
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

async function serve(box: ScriptedBox, mute: boolean): Promise<Server> {
  const server = createServer((request, response) => {
    if (!mute) {
      answer(box, request, response);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function answer(box: ScriptedBox, request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'http://fake');
  const authorized = request.headers['x-session-api-key'] === box.launch.sessionKey;
  const answers: Record<string, unknown> = {
    '/alive': { status: 'ok' },
    '/server_info': { uptime: 1, idle_time: box.idleSeconds },
    ...(authorized && {
      '/api/conversations/search': {
        items: box.conversationRuns ? [{ id: 'c', execution_status: 'running' }] : [],
        next_page_id: null,
      },
    }),
  };
  const found = answers[pathname];
  response.statusCode = found === undefined ? 401 : 200;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(found ?? { detail: 'no' }));
}
