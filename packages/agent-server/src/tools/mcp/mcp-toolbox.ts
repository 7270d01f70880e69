import { setTimeout as sleep } from 'node:timers/promises';
import type { McpServer, McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { shownAddress } from '@slipway/common/http/address-rules.js';
import { clipText } from '../../clipped-text.js';
import { cleanToolName, MAX_TOOL_NAME, mcpToolDefinition, type Tool } from '../tool.js';
import { freeName, repairSchema } from '../tool-schema.js';
import type { McpConnection, McpConnectionOptions } from './mcp-connection.js';
import { type ListedTool, problemsText, toContent } from './server-answers.js';

/** How often a server that ends again and again is started in one run. */
const MAX_RESTARTS = 3;
const MAX_REASON = 3_000;
const MAX_NAMES = 20;

export interface ToolNotice {
  code:
    | 'McpServerUnavailable'
    | 'McpServerEnded'
    | 'McpToolsAdjusted'
    | 'McpToolsChanged'
    | 'McpToolsNotListed'
    | 'ToolServerStarting'
    | 'ToolServerReady';
  detail: string;
}

interface ConfiguredServer {
  configuration: string;
  server: McpServer;
  restarts: number;
}

interface OpenServer extends ConfiguredServer {
  connection: McpConnection;
}

/** A server that is being started or reached, beside the run where that takes long. */
interface StartingServer extends ConfiguredServer {
  abort: AbortController;
  /** Resolves when it is known whether the server can be used. */
  settled: Promise<void>;
  outcome: { connection: McpConnection } | { error: unknown } | null;
  isTold: boolean;
}

export interface McpToolboxOptions extends McpConnectionOptions {
  /** How long a run waits for a server before it begins without it. */
  slowAfterMs?: number;
}

const SLOW_AFTER_MS = 10_000;

/** The tool servers of a conversation: connected when first needed, kept between runs, closed with it. */
export class McpToolbox {
  readonly #servers = new Map<string, OpenServer>();
  readonly #starting = new Map<string, StartingServer>();
  /** What was reported of each server's list, so that it is reported once. */
  readonly #told = new Map<string, string | null>();
  #options: McpToolboxOptions | null = null;

  /** Connects new servers, reconnects ended and changed ones, and closes those that are gone. */
  async connect(servers: McpServers, options: McpToolboxOptions, signal: AbortSignal): Promise<ToolNotice[]> {
    this.#options = options;
    const stale = [...this.#servers, ...this.#starting].filter(
      ([name, { configuration }]) => configuration !== JSON.stringify(servers[name]),
    );
    await Promise.all(stale.map(async ([name]) => await this.#disconnect(name)));
    for (const server of this.#servers.values()) {
      server.restarts = 0;
    }
    const missing = Object.entries(servers).filter(
      ([name]) => !this.#servers.has(name) && !this.#starting.has(name),
    );
    const refreshed = await this.refresh(signal);
    missing.forEach(([name, server]) => this.#start(name, server, options));
    return [...refreshed, ...(await this.#takeStarted(signal))];
  }

  /** Starts servers again that ended, takes those that have started, and lists the tools of those that announced others. */
  async refresh(signal: AbortSignal): Promise<ToolNotice[]> {
    const notices = await Promise.all(
      [...this.#servers].map(async ([name, server]) => {
        const { endReason } = server.connection;
        return endReason === null
          ? await this.#relist(name, server, signal)
          : await this.#restart(name, server, endReason, signal);
      }),
    );
    return [...notices.flat(), ...(await this.#takeStarted(signal))];
  }

  tools(taken: Iterable<string>): Tool[] {
    const used = new Set(taken);
    const byName = [...this.#servers].toSorted(([left], [right]) => (left < right ? -1 : 1));
    const offers = byName.flatMap(([server, { connection }]) =>
      connection.listing.tools.map((entry) => ({ server, connection, entry })),
    );
    const names = new Map<ListedTool, string>();
    // Tools that can keep their names do, before others are adapted.
    for (const { entry } of offers) {
      if (cleanToolName(entry.name) === entry.name && !used.has(entry.name)) {
        names.set(entry, entry.name);
        used.add(entry.name);
      }
    }
    return offers.map(({ server, connection, entry }) => {
      const name = names.get(entry) ?? uniqueToolName(server, entry.name, used);
      used.add(name);
      return mcpTool(name, entry, connection);
    });
  }

  async close(): Promise<void> {
    const names = new Set([...this.#servers.keys(), ...this.#starting.keys()]);
    await Promise.all([...names].map(async (name) => await this.#disconnect(name)));
  }

  #start(name: string, server: McpServer, options: McpToolboxOptions, restarts = 0): void {
    const abort = new AbortController();
    const limit = server.start_timeout_seconds;
    const connectTimeoutMs = limit ? limit * 1000 : options.connectTimeoutMs;
    const start = async (): Promise<void> => {
      try {
        // Most conversations have no tool server, and its client is large.
        const { McpConnection } = await import('./mcp-connection.js');
        const limits = { ...options, connectTimeoutMs };
        starting.outcome = { connection: await McpConnection.open(server, limits, abort.signal) };
      } catch (error) {
        starting.outcome = { error };
      }
    };
    const starting: StartingServer = {
      configuration: JSON.stringify(server),
      server,
      restarts,
      abort,
      settled: Promise.resolve(),
      outcome: null,
      isTold: false,
    };
    starting.settled = start();
    this.#starting.set(name, starting);
  }

  /** Waits a while for servers that begin to start; a slow one goes on beside the run, and is taken when it is there. */
  async #takeStarted(signal: AbortSignal): Promise<ToolNotice[]> {
    if (this.#starting.size === 0) {
      return [];
    }
    const fresh = [...this.#starting].filter(([, { isTold }]) => !isTold);
    const waiting = new AbortController();
    const enough = AbortSignal.any([waiting.signal, signal]);
    const slow = sleep(this.#options?.slowAfterMs ?? SLOW_AFTER_MS, undefined, { signal: enough });
    await Promise.race([Promise.all(fresh.map(([, { settled }]) => settled)), slow.catch(() => undefined)]);
    waiting.abort();
    if (signal.aborted) {
      // Those that were not announced end with the run that waits for them.
      await Promise.all(fresh.map(async ([name]) => await this.#disconnect(name)));
      return [];
    }
    return [...this.#starting].flatMap(([name, starting]) => this.#taken(name, starting));
  }

  #taken(name: string, starting: StartingServer): ToolNotice[] {
    const { server, configuration, restarts, outcome, isTold } = starting;
    if (outcome === null) {
      starting.isTold = true;
      const detail = `${described(name, server)} is still starting. The work begins without its tools, which come when they are there.`;
      return isTold ? [] : [{ code: 'ToolServerStarting', detail }];
    }
    this.#starting.delete(name);
    if ('error' in outcome) {
      const detail = `${described(name, server)} cannot be used: ${reasonOf(outcome.error, server)}`;
      return [{ code: 'McpServerUnavailable', detail }];
    }
    const { connection } = outcome;
    this.#servers.set(name, { configuration, server, connection, restarts });
    const detail = `${described(name, server)} has started; its tools can be used now.`;
    return [
      ...(isTold ? [{ code: 'ToolServerReady' as const, detail }] : []),
      ...this.#adjustments(name, server, connection),
    ];
  }

  async #restart(
    name: string,
    { server, restarts }: OpenServer,
    reason: string,
    signal: AbortSignal,
  ): Promise<ToolNotice[]> {
    await this.#disconnect(name);
    const ended = `${described(name, server)} has ended: ${clean(reason)}`;
    if (restarts === MAX_RESTARTS) {
      const detail = `${ended}\nIt is not started again before the next message.`;
      return [{ code: 'McpServerEnded', detail }];
    }
    if (this.#options !== null) {
      this.#start(name, server, this.#options, restarts + 1);
    }
    const opened = await this.#takeStarted(signal);
    if ('url' in server) {
      // Connections end for many reasons: proxies close those that are idle.
      return opened;
    }
    const detail = this.#servers.has(name) ? `${ended}\nIt was started again.` : ended;
    return [{ code: 'McpServerEnded', detail }, ...opened];
  }

  async #relist(
    name: string,
    { server, connection }: OpenServer,
    signal: AbortSignal,
  ): Promise<ToolNotice[]> {
    const before = new Set(connection.listing.tools.map((tool) => tool.name));
    try {
      if (!(await connection.refresh(signal))) {
        return [];
      }
    } catch (error) {
      if (signal.aborted) {
        return [];
      }
      const detail = `${described(name, server)} cannot list its tools anew, those from before stay: ${reasonOf(error, server)}`;
      return [{ code: 'McpToolsNotListed', detail }];
    }
    const after = new Set(connection.listing.tools.map((tool) => tool.name));
    const added = [...after].filter((tool) => !before.has(tool));
    const removed = [...before].filter((tool) => !after.has(tool));
    const changes = [...namesText('added', added), ...namesText('removed', removed)];
    const detail = `${described(name, server)} has changed its tools: ${changes.join('; ')}`;
    return [
      ...(changes.length === 0 ? [] : [{ code: 'McpToolsChanged' as const, detail }]),
      ...this.#adjustments(name, server, connection),
    ];
  }

  #adjustments(name: string, server: McpServer, connection: McpConnection): ToolNotice[] {
    const problems = problemsText(connection.listing.problems);
    if (problems === (this.#told.get(name) ?? null)) {
      return [];
    }
    this.#told.set(name, problems);
    return problems === null
      ? []
      : [{ code: 'McpToolsAdjusted', detail: `Of ${described(name, server, 'the')}: ${problems}.` }];
  }

  async #disconnect(name: string): Promise<void> {
    const server = this.#servers.get(name);
    const starting = this.#starting.get(name);
    this.#servers.delete(name);
    this.#starting.delete(name);
    starting?.abort.abort();
    await starting?.settled;
    const outcome = starting?.outcome ?? null;
    const connection = outcome !== null && 'connection' in outcome ? outcome.connection : server?.connection;
    // Closing fails if the server has already ended, which is fine.
    await connection?.close().catch(() => undefined);
  }
}

function described(name: string, server: McpServer, article = 'The'): string {
  return `${article} tool server ${name} (${'command' in server ? server.command : shownAddress(server.url)})`;
}

function reasonOf(error: unknown, server: McpServer): string {
  const message = errorMessage(error);
  return clean('url' in server ? message.replaceAll(server.url, shownAddress(server.url)) : message);
}

function clean(reason: string): string {
  return clipText(reason.toWellFormed(), MAX_REASON);
}

function namesText(what: string, names: readonly string[]): string[] {
  const shown = names.slice(0, MAX_NAMES).map((name) => clipText(name.toWellFormed(), MAX_TOOL_NAME));
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return names.length === 0 ? [] : [`${what} ${shown.join(', ')}${more}`];
}

function mcpTool(name: string, entry: ListedTool, connection: McpConnection): Tool {
  const { description } = entry;
  const { schema, renamed, repairs } = repairSchema(entry.inputSchema);
  return {
    name,
    description,
    needsConfirmation: true,
    inputSchema: schema,
    repairs,
    definition: mcpToolDefinition({ name, description }, schema),
    prepare: (args) => ({
      action: { kind: 'MCPToolAction', data: args },
      run: async ({ signal }) => {
        const named = Object.entries(args).map(([key, value]) => [renamed.get(key) ?? key, value] as const);
        const result = await connection.call(entry.name, Object.fromEntries(named), signal);
        return {
          kind: 'MCPToolObservation',
          content: toContent(result),
          is_error: result.isError === true,
          tool_name: name,
        };
      },
    }),
  };
}

/** The tool's own name, adapted to model APIs, with the server's name in front if another tool already uses it. */
function uniqueToolName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = cleanToolName(tool);
  return taken.has(plain) ? freeName(cleanToolName(`${server}_${tool}`), taken) : plain;
}
