import { mkdir } from 'node:fs/promises';
import type { AgentEngine, EngineContext, EngineServerOptions } from './engine/agent-engine.js';
import { parseOptions, readSessionKey, takeSessionKeys, DEFAULT_LIMITS } from './command-line.js';
import { log } from './observability.js';
import { nameWorkspace } from './path-aliases.js';
import { listenUnassigned } from './start-agent-server.js';
import { toolEnvironment } from './tool-view.js';

const STOP = Symbol('stop');

type EngineFactory = (context: EngineContext, server: EngineServerOptions) => Promise<AgentEngine>;

export async function runAgentServer(createEngine: EngineFactory): Promise<void> {
  // The log is on the disk that its tools fill.
  process.stderr.on('error', () => undefined);
  const stopping = stopSignal();
  const parsed = parseOptions(process.argv.slice(2), process.env, process.cwd());
  const { secretsOnStdin, workspaceName, ...unnamed } = parsed;
  if (process.env['NODE_USE_ENV_PROXY'] === '1') {
    globalThis.fetch = fetchInRanges(globalThis.fetch, process.env);
  }
  const fromEnvironment = takeSessionKeys(process.env);
  const [server, sessionKeys] = await Promise.all([
    listenUnassigned(unnamed),
    // A warm sandbox waits for its key for hours, or is stopped without one.
    secretsOnStdin
      ? Promise.race([readSessionKey(process.stdin).then((key) => [key]), stopping])
      : fromEnvironment,
  ]);
  if (sessionKeys === STOP) {
    process.stdin.destroy();
    await server.stop();
    return;
  }
  await makeHome(process.env['HOME']);
  const options = {
    ...unnamed,
    ...(workspaceName && (await nameWorkspace(unnamed.workspace, workspaceName))),
    sessionKeys,
    environment: toolEnvironment(process.env),
  };
  await server.assign({
    ...DEFAULT_LIMITS,
    ...options,
    createEngine: (context) => createEngine(context, options),
  });
  log('info', 'agent server started', {
    ...(server.port === null ? { socket: options.socket } : { host: options.host, port: server.port }),
    started_in_ms: Math.round(process.uptime() * 1000),
  });
  await stopping;
  log('info', 'agent server stopping');
  await server.stop();
  log('info', 'agent server stopped');
}

/** The volume of a pod starts empty, whatever its image has at the same path. */
async function makeHome(home: string | undefined): Promise<void> {
  if (home) {
    await mkdir(home, { recursive: true, mode: 0o700 });
  }
}

async function stopSignal(): Promise<typeof STOP> {
  return await new Promise((resolve) => {
    process.once('SIGTERM', () => resolve(STOP));
    process.once('SIGINT', () => resolve(STOP));
  });
}

/** As in `engines` of package.json. */
export const OLDEST_NODE = '22.19';

/** Why a program does not run on this Node.js; null: it does. An older one starts, and fails later. */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)
    ? null
    : `Slipway needs Node.js ${OLDEST_NODE} or newer; this is ${version}`;
}

/** Calls addresses within ranges of NO_PROXY directly, of which the `fetch` of Node.js knows nothing. */
export function fetchInRanges(
  fetch: typeof globalThis.fetch,
  environment: NodeJS.ProcessEnv,
): typeof globalThis.fetch {
  return async (input, init) => {
    // Loaded with the first request, so that it does not delay the start of listening.
    const { exemptIfInRange } = await import('@slipway/common/http/address-rules.js');
    exemptIfInRange(new URL(input instanceof Request ? input.url : input), environment);
    return await fetch(input, init);
  };
}
