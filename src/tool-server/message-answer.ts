import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { Logger } from '@nestjs/common';
import { isJsonObject, jsonAt } from '@slipway/common/json-access.js';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { DATABASE_PROBLEMS } from '../common/errors/database-problems.js';
import { databaseFailure } from '@slipway/database/database-failure.js';
import { DomainError } from '../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { productVersion } from '../common/product.js';
import { namesMediaType } from '@slipway/api/requests/response-headers.js';
import { idempotencyKey } from '../v1/idempotency/idempotency.service.js';
import type { ToolServerService } from './tool-server.service.js';
import type { ToolCaller } from './conversation-progress.js';
import { registerTools } from './tools.js';

const logger = new Logger('ToolServer');

const SERVER = { name: 'slipway', title: 'Slipway', version: productVersion() };
const INSTRUCTIONS =
  'Agents that work on repositories, each in a sandbox. start_conversation hands over a task, wait_for_conversation waits until it is done, get_result says what came of it.';
const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';
/** Names that no tool here has; see https://github.com/n8n-io/n8n/issues/21500 and 22787. */
const N8N_ARGUMENTS = new Set(['toolCallId', 'tool', 'sessionId', 'action', 'chatInput']);
/** Clients of earlier revisions refuse the whole result for a part that they do not know. */
const FIRST_WITH_LINKS = '2025-06-18';

interface Message {
  calling: Pick<ToolCaller, 'userId' | 'conversationId'>;
  body: unknown;
  headers: IncomingHttpHeaders;
  response: ServerResponse;
  calls: ToolServerService;
  /** The service's address, without a trailing slash. */
  address: string;
}

/** Answers one message, with a server and a transport of its own. Throws DomainError, InvalidInputError. */
export async function answerMessage(message: Message): Promise<void> {
  const { body, headers, response } = message;
  if (Array.isArray(body)) {
    // Each request counts for its caller; the protocol has no lists of messages since 2025-06-18.
    throw new DomainError('malformed_request', 'Send one message in a request.');
  }
  const type = answerType(headers.accept);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: type === JSON_TYPE });
  const server = serverFor(message);
  const left = once(response, 'close').then(() => server.close());
  await server.connect(transport);
  const request = new Request('http://localhost', {
    method: 'POST',
    headers: {
      Accept: type === null ? String(headers.accept) : `${JSON_TYPE}, ${STREAM_TYPE}`,
      'Content-Type': JSON_TYPE,
      ...protocolVersion(headers),
    },
  });
  const answer = await Promise.race([
    transport.handleRequest(request, { parsedBody: withArguments(body) }),
    left,
  ]);
  if (answer !== undefined) {
    await send(answer, response);
  }
}

/** Some clients say with null that a call has no arguments, and n8n sends what its own agent goes by. */
function withArguments(body: unknown): unknown {
  const params = jsonAt(body, 'params');
  const given = isJsonObject(params) && 'arguments' in params ? (params['arguments'] ?? {}) : null;
  if (!isJsonObject(body) || !isJsonObject(params) || !isJsonObject(given)) {
    return body;
  }
  const own = Object.entries(given).filter(([name]) => !N8N_ARGUMENTS.has(name));
  return { ...body, params: { ...params, arguments: Object.fromEntries(own) } };
}

/** The specification asks clients to accept both types, and many accept only one, or say nothing. */
function answerType(accept: string | undefined): string | null {
  const accepts = (...ranges: string[]): boolean => ranges.some((range) => namesMediaType(accept, range));
  if (accept === undefined || accepts(JSON_TYPE, 'application/*', '*/*')) {
    return JSON_TYPE;
  }
  return accepts(STREAM_TYPE, 'text/*') ? STREAM_TYPE : null;
}

function protocolVersion(headers: IncomingHttpHeaders): { 'mcp-protocol-version'?: string } {
  const version = headers['mcp-protocol-version'];
  return typeof version === 'string' ? { 'mcp-protocol-version': version } : {};
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  // The client may leave within a stream.
  await pipeline(answer.body === null ? Readable.from([]) : Readable.fromWeb(answer.body), response).catch(
    () => response.destroy(),
  );
}

function serverFor({ calling, headers, calls, address }: Message): McpServer {
  const server = new McpServer(SERVER, { instructions: INSTRUCTIONS });
  const hasLinks = (protocolVersion(headers)['mcp-protocol-version'] ?? '') >= FIRST_WITH_LINKS;
  const caller = {
    ...calling,
    idempotencyKey: idempotencyKey(text(headers['idempotency-key'])),
  };
  registerTools(server, {
    calls,
    caller: (signal) => ({ ...caller, signal }),
    answer: async (work) => {
      try {
        const found = { ...(await work) };
        return {
          structuredContent: found,
          content: [
            { type: 'text', text: JSON.stringify(found) },
            ...(hasLinks ? resourceLinks(found, address) : []),
          ],
        };
      } catch (error) {
        return { isError: true, content: [{ type: 'text', text: JSON.stringify(toolProblem(error)) }] };
      }
    },
  });
  return server;
}

function text(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}

/** Members of results that have addresses. */
interface Found {
  conversation_id?: string;
  url?: string;
}

function resourceLinks({ conversation_id: id, url }: Found, address: string): CallToolResult['content'] {
  const links = {
    conversation: id && `${address}/api/v1/app-conversations?ids=${id}`,
    'page of the conversation': id && `${address}/console/conversations/${id}`,
    'pull request': url,
  };
  return Object.entries(links).flatMap(([name, uri]) => (uri ? [{ type: 'resource_link', name, uri }] : []));
}

/** What `ProblemFilter` would answer, as far as it helps a model. */
function toolProblem(error: unknown): Record<string, unknown> {
  if (error instanceof InvalidInputError) {
    return { code: 'malformed_request', detail: error.sentence };
  }
  if (error instanceof DomainError) {
    const { code, message, extensions, retryAfterSeconds: seconds } = error;
    return { code, detail: message, ...extensions, ...(seconds !== undefined && { retry_after: seconds }) };
  }
  logger.error('failed to call tool', errorStack(error));
  const failure = databaseFailure(error);
  return failure === null
    ? { code: 'internal', detail: 'Something went wrong here; the log of the service has it.' }
    : { code: DATABASE_PROBLEMS[failure].code, detail: DATABASE_PROBLEMS[failure].detail };
}
