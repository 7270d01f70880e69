import type { AgentEngine, EngineContext, EngineServerOptions } from './engine/agent-engine.js';
import { DEFAULT_LIMITS } from './agent-server-options.js';
import { parseOptions, readSessionKey, takeSessionKeys } from './command-line.js';
import { log } from './log.js';
import { nameWorkspace } from './named-workspace.js';
import { startAgentServer } from './start-agent-server.js';
import { toolEnvironment } from './tool-environment.js';

/** Creates a conversation's engine from the server's options. */
type EngineFactory = (context: EngineContext, server: EngineServerOptions) => Promise<AgentEngine>;

/** The whole life of the process: reads options and secrets, serves, and stops at SIGTERM or SIGINT. */
export async function runAgentServer(createEngine: EngineFactory): Promise<void> {
  const parsed = parseOptions(process.argv.slice(2), process.env, process.cwd());
  const { secretsOnStdin, workspaceName, ...unnamed } = parsed;
  const options = {
    ...unnamed,
    ...(workspaceName && (await nameWorkspace(unnamed.workspace, workspaceName))),
  };
  const fromEnvironment = takeSessionKeys(process.env);
  const sessionKeys = secretsOnStdin ? [await readSessionKey(process.stdin)] : fromEnvironment;
  const serverOptions = { ...options, sessionKeys, environment: toolEnvironment(process.env) };
  const server = await startAgentServer({
    ...DEFAULT_LIMITS,
    ...serverOptions,
    createEngine: (context) => createEngine(context, serverOptions),
  });
  log('info', 'agent server started', {
    ...(server.port === null ? { socket: options.socket } : { host: options.host, port: server.port }),
    started_in_ms: Math.round(process.uptime() * 1000),
  });
  await stopSignal();
  log('info', 'agent server stopping');
  await server.stop();
  log('info', 'agent server stopped');
}

async function stopSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
