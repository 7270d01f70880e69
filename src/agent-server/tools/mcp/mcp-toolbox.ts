import type { McpServer, McpServers } from '../../../agent-protocol/mcp-servers.js';
import { describeFailure } from '../../failure.js';
import type { Tool } from '../tool.js';
import { McpConnection, type McpConnectionOptions } from './mcp-connection.js';
import { McpTool } from './mcp.tool.js';
import { uniqueToolName } from './unique-tool-name.js';

/** A tool server that cannot be used, and why. */
export interface McpFailure {
  server: string;
  reason: string;
}

interface Held {
  /** The configuration it was opened with, as text. */
  configuration: string;
  connection: McpConnection;
}

/** The tool servers of a conversation: opened when first needed, held between runs, ended with it. */
export class McpToolbox {
  readonly #held = new Map<string, Held>();

  /** Opens what is not open yet, again what has died or is configured otherwise now, and closes the rest. */
  async connect(servers: McpServers, options: McpConnectionOptions): Promise<McpFailure[]> {
    const gone = [...this.#held].filter(
      ([name, { configuration, connection }]) =>
        !connection.alive || configuration !== JSON.stringify(servers[name]),
    );
    await Promise.all(gone.map(async ([name]) => await this.#drop(name)));
    const missing = Object.entries(servers).filter(([name]) => !this.#held.has(name));
    const failures = await Promise.all(
      missing.map(async ([name, server]) => await this.#open(name, server, options)),
    );
    return failures.flat();
  }

  /** @param taken names that other tools have already */
  tools(taken: Iterable<string>): Tool[] {
    const names = new Set(taken);
    const tools: Tool[] = [];
    const byName = [...this.#held].toSorted(([left], [right]) => (left < right ? -1 : 1));
    for (const [server, { connection }] of byName) {
      for (const entry of connection.tools) {
        const name = uniqueToolName(server, entry.name, names);
        names.add(name);
        tools.push(new McpTool(name, entry, connection));
      }
    }
    return tools;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#held.keys()].map(async (name) => await this.#drop(name)));
  }

  async #open(name: string, server: McpServer, options: McpConnectionOptions): Promise<McpFailure[]> {
    try {
      const connection = await McpConnection.open(server, options);
      this.#held.set(name, { configuration: JSON.stringify(server), connection });
      return [];
    } catch (error) {
      return [{ server: name, reason: describeFailure(error).message }];
    }
  }

  async #drop(name: string): Promise<void> {
    const held = this.#held.get(name);
    this.#held.delete(name);
    // A server that is gone already cannot be closed, and need not.
    await held?.connection.close().catch(() => undefined);
  }
}
