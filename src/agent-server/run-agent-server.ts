import { DEFAULT_LIMITS } from './agent-server-options.js';
import type { AgentEngine } from './engine/agent-engine.js';
import type { EngineContext } from './engine/engine-context.js';
import type { EngineSurroundings } from './engine/engine-surroundings.js';
import { log } from './log.js';
import { parseOptions } from './parse-options.js';
import { readSessionKey, takeSessionKeys } from './read-secrets.js';
import { startAgentServer } from './start-agent-server.js';
import { toolEnvironment } from './tool-environment.js';

/** Makes engines, knowing the server's options. */
type EngineFactory = (context: EngineContext, surroundings: EngineSurroundings) => Promise<AgentEngine>;

/** The whole life of the process: options and secrets in, serve, stop when told to. */
export async function runAgentServer(createEngine: EngineFactory): Promise<void> {
  const { secretsOnStdin, ...options } = parseOptions(process.argv.slice(2), process.env, process.cwd());
  const fromEnvironment = takeSessionKeys(process.env);
  const sessionKeys = secretsOnStdin ? [await readSessionKey(process.stdin)] : fromEnvironment;
  const known = { ...options, sessionKeys, environment: toolEnvironment(process.env) };
  const server = await startAgentServer({
    ...DEFAULT_LIMITS,
    ...known,
    createEngine: (context) => createEngine(context, known),
  });
  log('info', 'listening', {
    host: options.host,
    port: server.port,
    startedInMs: Math.round(process.uptime() * 1000),
  });
  await stopSignal();
  log('info', 'stopping');
  await server.stop();
  log('info', 'stopped');
}

async function stopSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
