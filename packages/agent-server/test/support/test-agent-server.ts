import { afterAll, beforeAll } from '@jest/globals';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type AgentServerOptions, DEFAULT_LIMITS } from '../../src/command-line.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { FakeEngine } from '../fakes/fake-engine.js';
import { AgentServerClient, SESSION_KEY } from './agent-server-client.js';
import { listenAssigned, type ListeningServer, type PlainOptions } from './listen-assigned.js';
import { listenInSmallProcess } from './small-process/small-process.js';

/** An agent server in a folder of its own. */
export interface SeparateAgentServer {
  client: AgentServerClient;
  port: number;
  folder: string;
  workspace: string;
  /** Where it keeps a conversation. */
  folderOf(id: string): string;
  /** Ends it and starts another one over the same files. */
  restart(changes?: Partial<PlainOptions>): Promise<void>;
  /** Ends it and keeps its files, for `restart`. */
  halt(): Promise<void>;
  stop(): Promise<void>;
}

/** The same in this process. */
export interface TestAgentServer extends SeparateAgentServer {
  engines: FakeEngine[];
}

export async function startTestAgentServer({
  createEngine,
  ...options
}: Partial<AgentServerOptions> = {}): Promise<TestAgentServer> {
  const engines: FakeEngine[] = [];
  const createFake = async () => {
    const engine = new FakeEngine();
    engines.push(engine);
    return engine;
  };
  const server = await startInFolder(options, (all) =>
    listenAssigned({ ...all, createEngine: createEngine ?? createFake }),
  );
  return Object.assign(server, { engines });
}

/**
 * Uses the fake engine in a small process that the files of a worker share. An agent server starts many programs, and
 * the memory tables of a worker with the whole service take twenty times as long to copy for each.
 */
export async function startSeparateAgentServer(
  options: Partial<PlainOptions> = {},
): Promise<SeparateAgentServer> {
  return await startInFolder(options, listenInSmallProcess);
}

/** The server of a file or a `describe`, from before its tests until after them. */
export function useAgentServer<T extends SeparateAgentServer>(start: () => Promise<T>): T {
  const server = {} as T;
  // A restart changes its address.
  beforeAll(async () => void Object.setPrototypeOf(server, await start()));
  afterAll(async () => await server.stop());
  return server;
}

async function startInFolder(
  options: Partial<PlainOptions>,
  listen: (options: PlainOptions) => Promise<ListeningServer>,
): Promise<SeparateAgentServer> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'agent-server-')));
  const workspace = path.join(folder, 'workspace');
  const start = async (changes: Partial<PlainOptions> = {}) =>
    await listen({
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
      toolWrapper: [],
      stopGraceMs: 100,
      ...options,
      ...changes,
    });
  let server = await start();
  let isUp = true;
  const halt = async (): Promise<void> => {
    if (isUp) {
      isUp = false;
      await server.stop();
    }
  };
  const running: SeparateAgentServer = {
    client: new AgentServerClient(server.port),
    port: server.port,
    folder,
    workspace,
    folderOf: (id) => path.join(folder, 'conversations', id.replaceAll('-', '')),
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
