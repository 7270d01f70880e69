import type { Content } from '../../../agent-protocol/content.js';
import type { MCPToolObservation } from '../../../agent-protocol/observations.js';
import type { ToolDefinition } from '../../../agent-protocol/tool-definition.js';
import { clipText } from '../clip-text.js';
import { mcpToolDefinition } from '../mcp-tool-definition.js';
import { type PreparedCall, Tool, type ToolContext } from '../tool.js';
import type { McpConnection, McpToolEntry } from './mcp-connection.js';

const CALL_TIMEOUT_MS = 300_000;
const MAX_PARTS = 50;
/** In base64; nobody looks at a larger one, and the log keeps it for good. */
const MAX_IMAGE = 5_000_000;

/** A tool of a tool server; the server itself checks the arguments. */
export class McpTool extends Tool {
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
