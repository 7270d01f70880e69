import { METHOD_NOT_FOUND, ProtocolError } from '@modelcontextprotocol/client';
import type { McpServer } from '@slipway/agent-protocol/conversation-api.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { readToolList, type ToolListing } from './server-answers.js';
import { type McpRequestOptions, McpSession, type McpSessionOptions, refusedStatus } from './mcp-session.js';

const MAX_PAGES = 100;
const MAX_TOOLS = 5_000;
const RUNNING_TIMEOUT_MS = 30_000;
/** How long a tool may neither answer nor show progress. */
const CALL_TIMEOUT_MS = 300_000;

export interface McpConnectionOptions extends McpSessionOptions {
  /** Limit for start, handshake and tool list together; a server that runs already gets at most half a minute. */
  connectTimeoutMs: number;
}

/** A tool server that is in use: its session, which a new one may replace, and its tools. */
export class McpConnection {
  readonly #server: McpServer;
  readonly #options: McpConnectionOptions;
  #session: McpSession;
  #isListStale = false;

  private constructor(
    server: McpServer,
    options: McpConnectionOptions,
    session: McpSession,
    public listing: ToolListing,
  ) {
    this.#server = server;
    this.#options = options;
    this.#session = session;
  }

  /** @throws Error when the server cannot be started or reached, refuses, or takes too long */
  static async open(
    server: McpServer,
    options: McpConnectionOptions,
    signal?: AbortSignal,
  ): Promise<McpConnection> {
    try {
      return await McpConnection.#open(server, options, signal);
    } catch (error) {
      const other = otherTransport(server, error);
      if (other === null) {
        throw error;
      }
      // The user needs the failure of the transport that the user has chosen.
      return await McpConnection.#open(other, options, signal).catch(() => Promise.reject(error));
    }
  }

  static async #open(
    server: McpServer,
    options: McpConnectionOptions,
    signal?: AbortSignal,
  ): Promise<McpConnection> {
    const request = connectRequest(options, signal);
    const session = await McpSession.open(server, options, request);
    try {
      return new McpConnection(server, options, session, await listTools(session, server, request));
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Why it is of no more use, else null. A session that the server has forgotten is replaced with the next call. */
  get endReason(): string | null {
    return this.#session.isAlive || this.#session.isLost
      ? null
      : (this.#session.endReason ?? 'it closed the connection');
  }

  /** Repeated in a new session when the server forgot this one: it did not run then. @throws Error for the model */
  async call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const params = { name, arguments: args };
    const options = { signal, timeoutMs: CALL_TIMEOUT_MS };
    const session = this.#session;
    try {
      return await session.request('tools/call', params, options);
    } catch (error) {
      if (!session.isLost || signal.aborted) {
        throw error;
      }
    }
    await this.#renewSession(signal);
    return await this.#session.request('tools/call', params, options);
  }

  /** True when the list is a new one. @throws Error when it cannot be had; the earlier tools stay then */
  async refresh(signal: AbortSignal): Promise<boolean> {
    const hasChanged = this.#session.takeListChange();
    if (!hasChanged && !this.#isListStale) {
      return false;
    }
    try {
      if (this.#session.isLost) {
        await this.#renewSession(signal);
      }
      this.listing = await listTools(this.#session, this.#server, runningRequest(this.#options, signal));
    } finally {
      // Not asked again after a failure: a server that cannot list its tools now would delay each step.
      this.#isListStale = signal.aborted;
    }
    return true;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  async #renewSession(signal: AbortSignal): Promise<void> {
    const old = this.#session;
    const request = runningRequest(this.#options, signal);
    try {
      this.#session = await McpSession.open(this.#server, this.#options, request);
    } catch (error) {
      throw new Error(`it forgot the session, and a new one cannot be opened: ${errorMessage(error)}`, {
        cause: error,
      });
    }
    this.#isListStale = true;
    await old.close();
  }
}

// Users confuse the transports, which no address tells apart; a server of the other kind refuses the first request.
function otherTransport(server: McpServer, error: unknown): McpServer | null {
  const refusals = [400, 404, 405, 406, 415];
  return 'url' in server && refusals.includes(refusedStatus(error) ?? 0)
    ? { ...server, transport: server.transport === 'sse' ? 'http' : 'sse' }
    : null;
}

/** Options for several requests that share one time-out. */
function connectRequest(
  { connectTimeoutMs: timeoutMs }: McpConnectionOptions,
  signal?: AbortSignal,
): McpRequestOptions {
  const timeout = AbortSignal.timeout(timeoutMs);
  return { signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]), timeoutMs };
}

function runningRequest(options: McpConnectionOptions, signal: AbortSignal): McpRequestOptions {
  const connectTimeoutMs = Math.min(options.connectTimeoutMs, RUNNING_TIMEOUT_MS);
  return connectRequest({ ...options, connectTimeoutMs }, signal);
}

async function listTools(
  session: McpSession,
  { tools: allowed }: McpServer,
  options: McpRequestOptions,
): Promise<ToolListing> {
  const entries: unknown[] = [];
  const cursors = new Set<string | null>();
  let cursor: string | null = null;
  do {
    cursors.add(cursor);
    const { tools, nextCursor } = await requestPage(session, cursor, options);
    if (!Array.isArray(tools)) {
      throw new Error('its answer to tools/list has no list of tools');
    }
    entries.push(...tools);
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : null;
  } while (!cursors.has(cursor) && cursors.size <= MAX_PAGES && entries.length <= MAX_TOOLS);
  if (cursor === null) {
    return readToolList(entries, allowed);
  }
  const { tools, problems } = readToolList(entries.slice(0, MAX_TOOLS), allowed);
  return { tools, problems: [...problems, 'its list of tools has no end, and what follows was left out'] };
}

/** A server without tools need not know the method. */
async function requestPage(
  session: McpSession,
  cursor: string | null,
  options: McpRequestOptions,
): Promise<Record<string, unknown>> {
  try {
    return await session.request('tools/list', cursor === null ? {} : { cursor }, options);
  } catch (error) {
    if (
      error instanceof Error &&
      error.cause instanceof ProtocolError &&
      error.cause.code === METHOD_NOT_FOUND
    ) {
      return { tools: [] };
    }
    throw error;
  }
}
