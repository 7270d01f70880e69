import { hash } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type AgentServerOptions, DEFAULT_LIMITS } from '../../packages/agent-server/src/command-line.js';
import {
  listenUnassigned,
  type RunningAgentServer,
} from '../../packages/agent-server/src/start-agent-server.js';
import { toolEnvironment } from '../../packages/agent-server/src/tool-view.js';
import { WEBHOOK_DEFAULTS } from '../../packages/agent-server/src/webhooks/webhook-sender.js';
import { reservedPort } from '../support/reserved-port.js';
import { portVariables } from '../../src/v1/sandboxes/backends/launch-variables.js';
import {
  type PreparationLine,
  requireMayStop,
  SandboxBackendError,
  SandboxBackend,
  type SandboxExit,
  type SandboxFacts,
  type SandboxLaunch,
  type WarmLaunch,
  type WarmStarts,
} from '../../src/v1/sandboxes/backends/sandbox-backend.js';
import { type DiskSpace, diskSpace } from '../../src/v1/sandboxes/backends/disk-guard.js';
import { FakeEngine } from '../../packages/agent-server/test/fakes/fake-engine.js';

/** Without a session key its server waits for one. */
type MemoryLaunch = WarmLaunch & { sessionKey: string | null };

interface MemorySandbox {
  folder: string;
  createdAt: number;
  launches: MemoryLaunch[];
  engines: FakeEngine[];
  /** Null while it is stopped; without an address while it starts. */
  server: RunningAgentServer | 'starting' | null;
  /** Gives the server its key; null: it has one. */
  assign: ((launch: SandboxLaunch) => Promise<void>) | null;
  /** Of this machine, by name. */
  ports: Record<string, number>;
  exit: SandboxExit | null;
  log: string[];
}

/** The state that outlives a backend object, as a machine outlives the service; tests inspect and break it. */
export class MemoryMachine {
  readonly sandboxes = new Map<string, MemorySandbox>();
  /** Called before a program starts: may wait, or throw to make the start fail. */
  beforeStart: (launch: MemoryLaunch) => Promise<void> = async () => undefined;

  /** Ends a sandbox's agent server abruptly. */
  async crash(id: string, exit: Partial<SandboxExit> = {}): Promise<void> {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined || sandbox.server === null || sandbox.server === 'starting') {
      throw new Error(`sandbox ${id} does not run`);
    }
    const { server } = sandbox;
    sandbox.server = null;
    sandbox.exit = { code: null, signal: 'SIGKILL', outOfMemory: false, ...exit };
    sandbox.log.push('it crashed');
    await server.stop();
  }

  /** Removes every sandbox. */
  async close(): Promise<void> {
    const backend = new MemorySandboxBackend(this);
    await Promise.all([...this.sandboxes.keys()].map(async (id) => await backend.remove(id)));
  }
}

/**
 * Sandboxes without processes: each is our agent server in the test's own process, over real HTTP and a real folder, with
 * an engine that needs no model. A program of kind `command` prints its arguments and ends with exit code 7.
 */
export class MemorySandboxBackend extends SandboxBackend {
  readonly kind = 'process';
  override readonly warm: WarmStarts = {
    fingerprint: async (template) =>
      template.program.kind === 'native' ? hash('sha256', JSON.stringify(template)) : null,
    start: async (launch, signal) => {
      if (launch.program.kind !== 'native') {
        throw new SandboxBackendError('This program cannot wait for its key.');
      }
      await this.#start({ ...launch, sessionKey: null }, signal);
    },
  };

  /** As the process backend reports it. */
  isolation: 'bwrap' | 'none' = 'bwrap';

  constructor(readonly machine: MemoryMachine = new MemoryMachine()) {
    super();
  }

  async prepare(): Promise<PreparationLine[]> {
    return [{ level: 'log', text: 'sandboxes live in memory' }];
  }

  async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.#start(launch, signal);
    const sandbox = this.machine.sandboxes.get(launch.id);
    const assign = sandbox?.assign;
    if (sandbox && assign) {
      sandbox.assign = null;
      await assign(launch);
    }
  }

  async #start(launch: MemoryLaunch, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.machine.sandboxes.has(launch.id)) {
      this.machine.sandboxes.set(launch.id, {
        folder: '',
        createdAt: Date.now(),
        launches: [],
        engines: [],
        server: null,
        assign: null,
        ports: {},
        exit: null,
        log: [],
      });
    }
    await this.#run(launch, signal);
  }

  async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    if (!this.machine.sandboxes.has(launch.id)) {
      throw new SandboxBackendError('The sandbox cannot be resumed: its files are gone.');
    }
    await this.#run(launch, signal);
  }

  async inspect(id: string): Promise<SandboxFacts> {
    const sandbox = this.machine.sandboxes.get(id);
    if (sandbox === undefined) {
      return { id, state: 'missing', address: null, ports: {}, exit: null, createdAt: null };
    }
    const { server, exit, createdAt } = sandbox;
    const addresses = Object.entries(sandbox.ports).map(([name, port]) => [name, `http://127.0.0.1:${port}`]);
    if (server === null) {
      return { id, state: 'stopped', address: null, ports: {}, exit, createdAt };
    }
    const address = server === 'starting' ? null : `http://127.0.0.1:${server.port}`;
    return { id, state: 'running', address, ports: Object.fromEntries(addresses), exit: null, createdAt };
  }

  async logTail(id: string): Promise<string> {
    return (this.machine.sandboxes.get(id)?.log ?? []).map((line) => `${line}\n`).join('');
  }

  async pause(id: string, mayStop?: () => boolean): Promise<void> {
    const sandbox = this.machine.sandboxes.get(id);
    const server = sandbox?.server;
    if (sandbox && server && server !== 'starting') {
      requireMayStop(mayStop);
      sandbox.server = null;
      sandbox.exit = { code: 0, signal: null, outOfMemory: false };
      await server.stop();
    }
  }

  async remove(id: string): Promise<void> {
    await this.pause(id);
    const folder = this.machine.sandboxes.get(id)?.folder;
    this.machine.sandboxes.delete(id);
    if (folder) {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async list(): Promise<SandboxFacts[]> {
    return await Promise.all([...this.machine.sandboxes.keys()].map(async (id) => await this.inspect(id)));
  }

  async disk(): Promise<DiskSpace | null> {
    return await diskSpace(tmpdir());
  }

  async #run(launch: MemoryLaunch, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const sandbox = this.machine.sandboxes.get(launch.id);
    if (sandbox === undefined || sandbox.server !== null) {
      return;
    }
    sandbox.server = 'starting';
    sandbox.exit = null;
    sandbox.assign = null;
    sandbox.launches.push(launch);
    try {
      await this.machine.beforeStart(launch);
      if (launch.program.kind === 'command') {
        sandbox.log.push(launch.program.args.join(' '));
        sandbox.exit = { code: 7, signal: null, outOfMemory: false };
        sandbox.server = null;
        return;
      }
      sandbox.folder ||= await realpath(await mkdtemp(path.join(tmpdir(), 'memory-sandbox-')));
      for (const name of Object.keys(launch.ports)) {
        sandbox.ports[name] = await reservedPort();
      }
      const server = await startServer(sandbox, launch);
      if (this.machine.sandboxes.get(launch.id) !== sandbox) {
        // The sandbox was removed meanwhile.
        await server.stop();
        await rm(sandbox.folder, { recursive: true, force: true });
        return;
      }
      sandbox.server = server;
      sandbox.log.push('listening');
    } catch (error) {
      sandbox.server = null;
      throw error;
    }
  }
}

async function startServer(sandbox: MemorySandbox, launch: MemoryLaunch): Promise<RunningAgentServer> {
  const { folder } = sandbox;
  await mkdir(path.join(folder, 'shared'), { recursive: true });
  const server = await listenUnassigned({
    host: '127.0.0.1',
    port: 0,
    socket: null,
    relays: [],
    awaitNetwork: false,
  });
  const assign = async (owned: MemoryLaunch): Promise<void> =>
    await server.assign(serverOptions(sandbox, owned));
  if (launch.sessionKey === null) {
    sandbox.assign = assign;
  } else {
    await assign(launch);
  }
  return server;
}

function serverOptions({ folder, engines, ports }: MemorySandbox, launch: MemoryLaunch): AgentServerOptions {
  const workspace = path.join(folder, launch.workingDir);
  const shared = path.join(folder, 'shared');
  return {
    ...DEFAULT_LIMITS,
    host: '127.0.0.1',
    port: 0,
    socket: null,
    relays: [],
    awaitNetwork: false,
    conversationsPath: path.join(folder, 'conversations'),
    bashEventsPath: path.join(folder, 'bash_events'),
    workspace,
    fileRoots: [shared],
    aliases: [
      { name: '/workspace/project', folder: workspace },
      { name: '/workspace', folder: shared },
    ],
    sessionKeys: launch.sessionKey === null ? [] : [launch.sessionKey],
    webhook: launch.callbackUrl === null ? null : { ...WEBHOOK_DEFAULTS, baseUrl: launch.callbackUrl },
    corsOrigins: [],
    environment: {
      ...toolEnvironment({ PATH: process.env['PATH'], HOME: workspace, TMPDIR: workspace }),
      ...launch.env,
      ...portVariables(ports, '127.0.0.1'),
    },
    createEngine: async () => {
      const engine = new FakeEngine();
      engines.push(engine);
      return engine;
    },
    toolWrapper: [],
    stopGraceMs: 100,
  };
}
