import { createMCPClient, type ListToolsResult, type MCPClient, MCPClientError } from '@ai-sdk/mcp';
import type { McpServer } from '../../../agent-protocol/conversation-api.js';
import { StdioTransport } from './stdio-transport.js';

/** Checks whether an address from a user may be called. Returns the reason against it, or null. */
export type CheckUrl = (url: URL) => Promise<string | null>;

export interface McpConnectionOptions {
  workingDir: string;
  /** Environment of child processes; the server's own variables are added. */
  environment: Record<string, string>;
  /** Program and arguments put before those of child processes, for example one that isolates them. */
  wrapper: readonly string[];
  checkUrl: CheckUrl;
  /** For start, handshake and tool list together. */
  connectTimeoutMs: number;
}

export type McpToolEntry = ListToolsResult['tools'][number];

/** A connection to one tool server. */
export class McpConnection {
  readonly tools: readonly McpToolEntry[];
  readonly #client: MCPClient;
  #alive = true;

  private constructor(client: MCPClient, tools: readonly McpToolEntry[]) {
    this.#client = client;
    this.tools = tools;
  }

  /** @throws Error when the server cannot be started or reached, refuses, or takes too long */
  static async open(server: McpServer, options: McpConnectionOptions): Promise<McpConnection> {
    const signal = AbortSignal.timeout(options.connectTimeoutMs);
    const transport = 'command' in server ? stdioTransport(server, options) : null;
    let client: MCPClient | null = null;
    try {
      client = await createMCPClient({
        clientName: 'slipway',
        transport: transport ?? (await remoteTransport(server, options.checkUrl)),
        // Older servers do not support version discovery; all of them support `initialize`.
        protocolVersionDiscovery: false,
        initializationOptions: { signal },
        onUncaughtError: () => undefined,
      });
      return new McpConnection(client, await listAll(client, signal));
    } catch (error) {
      await client?.close().catch(() => undefined);
      await transport?.close();
      throw signal.aborted ? new Error(`no response within ${options.connectTimeoutMs / 1000} s`) : error;
    }
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** @throws Error when the server does not respond */
  async call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
    timeoutMs: number,
  ): ReturnType<MCPClient['callTool']> {
    try {
      return await this.#client.callTool({
        name,
        arguments: args,
        options: { signal, timeout: timeoutMs, maxTotalTimeout: timeoutMs },
      });
    } catch (error) {
      // Errors that the server itself returns have a code; any other one means that it may have died.
      if (!signal.aborted && !hasCode(error)) {
        this.#alive = false;
      }
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#alive = false;
    await this.#client.close();
  }
}

function stdioTransport(
  server: Extract<McpServer, { command: string }>,
  { workingDir, environment, wrapper }: McpConnectionOptions,
): StdioTransport {
  const [command = server.command, ...args] = [...wrapper, server.command, ...(server.args ?? [])];
  return new StdioTransport({
    command,
    args,
    cwd: workingDir,
    env: { ...environment, ...server.env },
  });
}

interface RemoteTransport {
  type: 'http' | 'sse';
  url: string;
  headers: Record<string, string> | undefined;
  redirect: 'error';
  fetch: typeof fetch;
}

async function remoteTransport(server: McpServer, checkUrl: CheckUrl): Promise<RemoteTransport> {
  if (!('url' in server)) {
    throw new Error('the tool server has neither a command nor an address');
  }
  const refusal = await checkUrl(new URL(server.url));
  if (refusal !== null) {
    throw new Error(refusal);
  }
  return {
    type: server.transport,
    url: server.url,
    headers: server.headers,
    redirect: 'error',
    fetch: checkedFetch(checkUrl),
  };
}

/** Servers can send further addresses, so each call is checked. */
function checkedFetch(checkUrl: CheckUrl): typeof fetch {
  return async (input, init) => {
    const refusal = await checkUrl(new URL(input instanceof Request ? input.url : input));
    if (refusal !== null) {
      throw new Error(refusal);
    }
    return await fetch(input, init);
  };
}

async function listAll(client: MCPClient, signal: AbortSignal): Promise<McpToolEntry[]> {
  const tools: McpToolEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools({ params: { cursor }, options: { signal } });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

function hasCode(error: unknown): boolean {
  return MCPClientError.isInstance(error) && error.code !== undefined;
}
