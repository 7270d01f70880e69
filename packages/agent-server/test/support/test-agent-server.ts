import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type AgentServerOptions, DEFAULT_LIMITS } from '../../src/command-line.js';
import { listenUnassigned } from '../../src/start-agent-server.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { FakeEngine } from '../fakes/fake-engine.js';
import { AgentServerClient, SESSION_KEY } from './agent-server-client.js';

/** An agent server in this process, in a folder of its own. */
export interface TestAgentServer {
  client: AgentServerClient;
  port: number;
  folder: string;
  workspace: string;
  engines: FakeEngine[];
  /** Ends it and starts another one over the same files. */
  restart(changes?: Partial<AgentServerOptions>): Promise<void>;
  /** Ends it and keeps its files, for `restart`. */
  halt(): Promise<void>;
  stop(): Promise<void>;
}

export async function startTestAgentServer(
  options: Partial<AgentServerOptions> = {},
): Promise<TestAgentServer> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'agent-server-')));
  const workspace = path.join(folder, 'workspace');
  const engines: FakeEngine[] = [];
  const start = async (changes: Partial<AgentServerOptions> = {}) => {
    const all = {
      ...DEFAULT_LIMITS,
      host: '127.0.0.1',
      port: 0,
      socket: null,
      relays: [],
      awaitNetwork: false,
      conversationsPath: path.join(folder, 'conversations'),
      bashEventsPath: path.join(folder, 'bash'),
      workspace,
      fileRoots: [],
      aliases: [],
      sessionKeys: [SESSION_KEY],
      webhook: null,
      corsOrigins: [],
      environment: toolEnvironment(process.env),
      createEngine: async () => {
        const engine = new FakeEngine();
        engines.push(engine);
        return engine;
      },
      toolWrapper: [],
      stopGraceMs: 100,
      ...options,
      ...changes,
    };
    const started = await listenUnassigned(all);
    await started.assign(all);
    if (started.port === null) {
      throw new Error('the agent server listens on a socket');
    }
    return { port: started.port, stop: async () => await started.stop() };
  };
  let server = await start();
  let isUp = true;
  const halt = async (): Promise<void> => {
    if (isUp) {
      isUp = false;
      await server.stop();
    }
  };
  const running: TestAgentServer = {
    client: new AgentServerClient(server.port),
    port: server.port,
    folder,
    workspace,
    engines,
    restart: async (changes = {}) => {
      await halt();
      server = await start(changes);
      isUp = true;
      running.port = server.port;
      running.client = new AgentServerClient(server.port);
    },
    halt,
    stop: async () => {
      await halt();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  return running;
}
