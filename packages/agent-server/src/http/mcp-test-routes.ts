import { Router } from 'express';
import { z } from 'zod';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { jsonList, jsonText, isJsonObject } from '@slipway/common/json-access.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { mcpConfigSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import type { Conversations } from '../conversations/conversations.js';
import { readMcpServers } from '../conversations/credentials.js';
import { parseRequest } from './request-parsing.js';
import { resolvePath, type ToolView } from '../tool-view.js';
import type { McpConnection, McpConnectionOptions } from '../tools/mcp/mcp-connection.js';

const TESTS_AT_ONCE = 4;

const serverSchema = z.unknown().transform((given, context) => {
  const config = mcpConfigSchema.safeParse({ server: withTransport(given) });
  const server = readMcpServers(config.data?.mcpServers)?.['server'];
  for (const { message, path: place } of config.error?.issues ?? []) {
    context.addIssue({ code: 'custom', message, path: place.slice(2) });
  }
  if (server === undefined) {
    if (config.success) {
      context.addIssue({ code: 'custom', message: 'A tool server needs a command or a url' });
    }
    return z.NEVER;
  }
  return { server, folder: jsonText(given, 'cwd') ?? '.' };
});

const testSchema = z.object({
  name: z.string().trim().min(1).max(128).default('test-server'),
  server: serverSchema,
  /** Seconds. */
  timeout: z.number().positive().max(120).default(15),
  tool_call: z
    .object({ name: z.string().min(1), arguments: namedValues(z.string(), z.unknown()).default({}) })
    .nullish(),
});

type TestRequest = z.infer<typeof testSchema>;

interface McpTestOptions {
  conversations: Conversations;
  workspace: string;
  view: ToolView;
}

/** Tries a tool server before it is stored. That it cannot be used is an answer, not an error of the request. */
export function mcpTestRoutes(options: McpTestOptions): Router {
  const router = Router();
  const limit = new KeyedLimit(TESTS_AT_ONCE);

  router.post('/test', async (request, response) => {
    const test = parseRequest(testSchema, 'body', request.body);
    response.json(await limit.run('', async () => await tryServer(test, options)));
  });

  return router;
}

async function tryServer(
  { server, timeout, tool_call: call }: TestRequest,
  options: McpTestOptions,
): Promise<object> {
  const connectTimeoutMs = timeout * 1000;
  const signal = AbortSignal.timeout(connectTimeoutMs);
  let connection: McpConnection | null = null;
  try {
    // Most servers are never asked, and the client is large.
    const { McpConnection: Connection } = await import('../tools/mcp/mcp-connection.js');
    connection = await Connection.open(
      server.server,
      connectionOptions(server.folder, connectTimeoutMs, options),
    );
    const tools = connection.listing.tools.map(({ name }) => name);
    if (!call) {
      return { ok: true, tools };
    }
    return { ok: true, tools, tool_result: await callTool(connection, call, connectTimeoutMs) };
  } catch (error) {
    return { ok: false, error: errorMessage(error), error_kind: signal.aborted ? 'timeout' : 'connection' };
  } finally {
    // Closing fails if the server has already ended, which is fine.
    await connection?.close().catch(() => undefined);
  }
}

function connectionOptions(
  folder: string,
  connectTimeoutMs: number,
  { conversations, workspace, view }: McpTestOptions,
): McpConnectionOptions {
  // A server that conversations here may not call is not tested from here either.
  const allowlists = conversations
    .all()
    .map(({ state }) => new OutboundAddresses(state.credentials.outboundAllowlist));
  return {
    workingDir: resolvePath(view.aliases ?? [], workspace, folder),
    environment: view.environment,
    wrapper: view.wrapper,
    checkUrl: async ({ href }) =>
      allowlists.map((list) => list.problem(href)).find((problem) => problem !== null) ?? null,
    connectTimeoutMs,
  };
}

/** What a tool says of itself is reported, and is no failure of the test: the caller judges it. */
async function callTool(
  connection: McpConnection,
  { name, arguments: args }: NonNullable<TestRequest['tool_call']>,
  timeoutMs: number,
): Promise<{ is_error: boolean; text: string }> {
  try {
    const result = await connection.call(name, args, AbortSignal.timeout(timeoutMs));
    const texts = jsonList(result, 'content').map((part) => jsonText(part, 'text'));
    return { is_error: result['isError'] === true, text: texts.filter((text) => text !== null).join('\n') };
  } catch (error) {
    return { is_error: true, text: errorMessage(error) };
  }
}

/** The name of a transport is the `type` of a server here. */
function withTransport(given: unknown): unknown {
  return isJsonObject(given) && typeof given['type'] === 'string'
    ? { ...given, transport: given['type'] }
    : given;
}
