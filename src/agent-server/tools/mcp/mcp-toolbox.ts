import type { McpServer, McpServers } from '../../../agent-protocol/conversation.js';
import type {
  Content,
  McpToolDefinition,
  MCPToolObservation,
  ToolDefinition,
} from '../../../agent-protocol/events.js';
import { describeFailure } from '../../log.js';
import { clipText, type PreparedCall, Tool, type ToolContext } from '../tool.js';
import { McpConnection, type McpConnectionOptions, type McpToolEntry } from './mcp-connection.js';

const CALL_TIMEOUT_MS = 300_000;
const MAX_PARTS = 50;
/** In base64; nobody looks at a larger one, and the log keeps it for good. */
const MAX_IMAGE = 5_000_000;

/** A tool of a tool server; the server itself checks the arguments. */
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
      content: contentOf(result),
      is_error: result.isError === true,
      tool_name: this.name,
    };
  }
}

/** Text and pictures; of anything else the model sees the JSON. */
function contentOf(result: Record<string, unknown>): Content[] {
  if (!Array.isArray(result['content'])) {
    const value = result['structuredContent'] ?? result['toolResult'] ?? null;
    return [{ type: 'text', text: clipText(JSON.stringify(value)) }];
  }
  return result['content'].slice(0, MAX_PARTS).map((part: Record<string, unknown>): Content => {
    if (part['type'] === 'text') {
      return { type: 'text', text: clipText(String(part['text'])) };
    }
    return part['type'] === 'image'
      ? picture(String(part['mimeType']), String(part['data']))
      : { type: 'text', text: clipText(JSON.stringify(part)) };
  });
}

function picture(mediaType: string, base64: string): Content {
  return base64.length > MAX_IMAGE
    ? { type: 'text', text: `[a picture of ${base64.length} characters is too large and was left out]` }
    : { type: 'image', image_urls: [`data:${mediaType};base64,${base64}`] };
}

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

/** How tools without a kind of their own are listed. */
export function mcpToolDefinition(tool: Tool): McpToolDefinition {
  return {
    kind: 'MCPToolDefinition',
    title: tool.name,
    description: tool.description,
    action_type: 'MCPToolAction',
    observation_type: 'MCPToolObservation',
    mcp_tool: { name: tool.name, description: tool.description, inputSchema: tool.inputSchema },
  };
}

const MAX_LENGTH = 64;

/**
 * Name under which a tool server's tool is offered: its own, as far as models' APIs accept it, with the server's name
 * before it when another tool has it already.
 */
function uniqueToolName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = cleanName(tool);
  if (!taken.has(plain)) {
    return plain;
  }
  const full = cleanName(`${server}_${tool}`);
  let name = full;
  for (let count = 2; taken.has(name); count += 1) {
    name = `${full.slice(0, MAX_LENGTH - 4)}_${count}`;
  }
  return name;
}

function cleanName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_LENGTH) || 'tool';
}
