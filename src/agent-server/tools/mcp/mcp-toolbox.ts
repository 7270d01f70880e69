import type { McpServer, McpServers } from '../../../agent-protocol/conversation-api.js';
import type { Content, MCPToolObservation, ToolDefinition } from '../../../agent-protocol/events.js';
import { errorMessage } from '../../../common/errors/error-message.js';
import { clipText } from '../../clipped-text.js';
import { mcpToolDefinition, type PreparedCall, Tool, type ToolContext } from '../tool.js';
import type { McpConnection, McpConnectionOptions, McpToolEntry } from './mcp-connection.js';

const CALL_TIMEOUT_MS = 300_000;
const MAX_PARTS = 50;
/** Characters in base64. Larger images are useless to the model, and the log would keep them forever. */
const MAX_IMAGE = 5_000_000;
/** Model APIs accept no longer names. */
const MAX_NAME_LENGTH = 64;

/** A tool server that cannot be used, and why. */
export interface McpFailure {
  server: string;
  reason: string;
}

interface OpenServer {
  /** The configuration that it was connected with, as JSON. */
  configuration: string;
  connection: McpConnection;
}

/** The tool servers of a conversation: connected when first needed, kept between runs, closed with the conversation. */
export class McpToolbox {
  readonly #servers = new Map<string, OpenServer>();

  /** Connects new servers, reconnects those that died or whose configuration changed, and closes those that are gone. */
  async connect(servers: McpServers, options: McpConnectionOptions): Promise<McpFailure[]> {
    const stale = [...this.#servers].filter(
      ([name, { configuration, connection }]) =>
        !connection.alive || configuration !== JSON.stringify(servers[name]),
    );
    await Promise.all(stale.map(async ([name]) => await this.#disconnect(name)));
    const missing = Object.entries(servers).filter(([name]) => !this.#servers.has(name));
    const failures = await Promise.all(
      missing.map(async ([name, server]) => await this.#open(name, server, options)),
    );
    return failures.flat();
  }

  /** @param taken names that other tools already use */
  tools(taken: Iterable<string>): Tool[] {
    const names = new Set(taken);
    const tools: Tool[] = [];
    const byName = [...this.#servers].toSorted(([left], [right]) => (left < right ? -1 : 1));
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
    await Promise.all([...this.#servers.keys()].map(async (name) => await this.#disconnect(name)));
  }

  async #open(name: string, server: McpServer, options: McpConnectionOptions): Promise<McpFailure[]> {
    try {
      // Most conversations have no tool server, and its client is large.
      const { McpConnection } = await import('./mcp-connection.js');
      const connection = await McpConnection.open(server, options);
      this.#servers.set(name, { configuration: JSON.stringify(server), connection });
      return [];
    } catch (error) {
      return [{ server: name, reason: errorMessage(error) }];
    }
  }

  async #disconnect(name: string): Promise<void> {
    const server = this.#servers.get(name);
    this.#servers.delete(name);
    // Closing fails if the server has already ended, which is fine.
    await server?.connection.close().catch(() => undefined);
  }
}

/** A tool of a tool server, which validates the arguments itself. */
class McpTool extends Tool {
  readonly name: string;
  readonly description: string;
  readonly needsConfirmation = true;
  readonly inputSchema: Record<string, unknown>;
  readonly #connection: McpConnection;
  readonly #entry: McpToolEntry;

  /** @param name as the model calls it; the server knows it by the entry's name */
  constructor(name: string, entry: McpToolEntry, connection: McpConnection) {
    super();
    this.name = name;
    this.description = entry.description ?? '';
    this.inputSchema = { ...entry.inputSchema };
    this.#entry = entry;
    this.#connection = connection;
  }

  prepare(args: Record<string, unknown>): PreparedCall {
    return {
      action: { kind: 'MCPToolAction', data: args },
      run: async (context) => await this.#run(args, context),
    };
  }

  definition(): ToolDefinition {
    return mcpToolDefinition(this);
  }

  async #run(args: Record<string, unknown>, { signal }: ToolContext): Promise<MCPToolObservation> {
    const result = await this.#connection.call(this.#entry.name, args, signal, CALL_TIMEOUT_MS);
    return {
      kind: 'MCPToolObservation',
      content: toContent(result),
      is_error: result.isError === true,
      tool_name: this.name,
    };
  }
}

/** Text and images; everything else is shown to the model as JSON. */
function toContent(result: Record<string, unknown>): Content[] {
  if (!Array.isArray(result['content'])) {
    const value = result['structuredContent'] ?? result['toolResult'] ?? null;
    return [{ type: 'text', text: clipText(JSON.stringify(value)) }];
  }
  return result['content'].slice(0, MAX_PARTS).map((part: Record<string, unknown>): Content => {
    if (part['type'] === 'text') {
      return { type: 'text', text: clipText(String(part['text'])) };
    }
    return part['type'] === 'image'
      ? imageContent(String(part['mimeType']), String(part['data']))
      : { type: 'text', text: clipText(JSON.stringify(part)) };
  });
}

function imageContent(mediaType: string, base64: string): Content {
  return base64.length > MAX_IMAGE
    ? { type: 'text', text: `[an image of ${base64.length} characters is too large and was left out]` }
    : { type: 'image', image_urls: [`data:${mediaType};base64,${base64}`] };
}

/**
 * The name under which a tool server's tool is offered: its own, adapted to what model APIs accept, with the server's
 * name in front if another tool already uses it.
 */
function uniqueToolName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = cleanName(tool);
  if (!taken.has(plain)) {
    return plain;
  }
  const full = cleanName(`${server}_${tool}`);
  let name = full;
  for (let count = 2; taken.has(name); count += 1) {
    name = `${full.slice(0, MAX_NAME_LENGTH - 4)}_${count}`;
  }
  return name;
}

function cleanName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_NAME_LENGTH) || 'tool';
}
