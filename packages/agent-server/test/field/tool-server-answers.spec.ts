import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { jsonAt } from '@slipway/common/json-access.js';
import { McpToolbox } from '../../src/tools/mcp/mcp-toolbox.js';
import {
  event,
  type Exchange,
  ScriptedMcpServer,
  type SeenMessage,
} from '../fakes/mcp-servers/scripted-mcp-server.js';
import { toolboxOptions } from '../fakes/mcp-servers/toolbox-options.js';
import { until } from '../../../../test/support/until.js';

let server: ScriptedMcpServer;
let toolbox: McpToolbox;

beforeEach(async () => {
  server = await ScriptedMcpServer.start();
  toolbox = new McpToolbox();
});
afterEach(async () => {
  await toolbox.close();
  await server.close();
});

async function connect(connectTimeoutMs = 20_000): Promise<unknown[]> {
  const servers: McpServers = { far: { url: server.url, transport: 'http' } };
  return await toolbox.connect(servers, toolboxOptions({ connectTimeoutMs }), new AbortController().signal);
}

async function callEcho(signal = new AbortController().signal): Promise<unknown> {
  const [echo] = toolbox.tools([]);
  const called = await echo?.prepare({ text: 'hi' }).run({ workingDir: '/', environment: {}, signal });
  return called?.content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');
}

/** Connects to the server, which answers calls so from then on. */
async function connectTo(answer: (exchange: Exchange) => void | Promise<void>): Promise<void> {
  await connect();
  server.answers.set('tools/call', answer);
}

const done = { content: [{ type: 'text', text: 'done' }] };
const response = ({ id }: SeenMessage): object => ({ jsonrpc: '2.0', id, result: done });

// Servers of every kind: streams or single answers, hand-written JSON, proxies in between.
describe('an answer', () => {
  it('may be a stream', async () => {
    server.answersAs = 'sse';
    expect(await connect()).toEqual([]);
    expect(await callEcho()).toBe('{"text":"hi"}');
  });

  it('may be a stream that comes character by character', async () => {
    await connectTo(async ({ message, response: answer }) => {
      answer.writeHead(200, { 'content-type': 'text/event-stream' });
      const text = event({ jsonrpc: '2.0', id: 99, result: {} }) + event(response(message));
      for (const character of text.replaceAll('\n', '\r\n')) {
        answer.write(character);
        await nextTurn();
      }
      answer.end();
    });
    expect(await callEcho()).toBe('done');
  });

  const JSON_TYPE = 'application/json';
  const STREAM = 'text/event-stream';
  const NULLS = { isError: null, structuredContent: null, _meta: null };
  const other = event({ jsonrpc: '2.0', id: 99, result: {} });
  const progressOf = ({ params }: SeenMessage): string => {
    const told = { progressToken: jsonAt(params, '_meta', 'progressToken') };
    const method = 'notifications/progress';
    return [1, 2, 3]
      .map((progress) => event({ jsonrpc: '2.0', method, params: { ...told, progress } }))
      .join('');
  };
  it.each<[string, string | null, (message: SeenMessage) => unknown]>([
    ['a list', JSON_TYPE, (message) => [response(message)]],
    ['without a type', null, response],
    ['of another type', 'text/plain', response],
    ['without a version', JSON_TYPE, ({ id }) => ({ id, result: done })],
    ['as in JSON-RPC 1.0', JSON_TYPE, ({ id }) => ({ id, result: done, error: null })],
    ['with members of its own', JSON_TYPE, (message) => ({ ...response(message), took: 3 })],
    ['with the id as a text', JSON_TYPE, ({ id }) => response({ id: `${id}` })],
    ['without an id', JSON_TYPE, () => response({})],
    ['with a null id', JSON_TYPE, () => ({ ...response({}), id: null })],
    ['with null members', JSON_TYPE, ({ id }) => ({ jsonrpc: '2.0', id, result: { ...done, ...NULLS } })],
    ['a stream with comments', STREAM, (message) => `: ping\n\nretry: 10\n\n${event(response(message))}`],
    ['a stream that ends early', STREAM, (message) => `data: ${JSON.stringify(response(message))}`],
    [
      'a stream with CR LF',
      'text/event-stream; charset=utf-8',
      (message) => event(response(message)).replaceAll('\n', '\r\n'),
    ],
    [
      'a stream with lines',
      STREAM,
      ({ id }) => `data: {"jsonrpc": "2.0",\ndata: "id": ${id}, "result": ${JSON.stringify(done)}}\n\n`,
    ],
    ['a stream without a version', STREAM, ({ id }) => event({ id, result: done })],
    [
      'a stream with garbage',
      STREAM,
      (message) => `data: [DONE]\n\nevent: other\ndata: 1\n\n${event(response(message))}`,
    ],
    ['a stream with another answer first', STREAM, (message) => other + event(response(message))],
    ['a stream that tells of progress', STREAM, (message) => progressOf(message) + event(response(message))],
  ])('may be %s', async (_, type, bodyOf) => {
    await connectTo(({ message, response: answer }) => {
      const body = bodyOf(message);
      answer.writeHead(200, type === null ? {} : { 'content-type': type });
      answer.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    expect(await callEcho()).toBe('done');
  });

  const SIGN_IN = '<html><title>Sign in</title></html>';
  const unknownTool = '{"jsonrpc":"2.0","error":{"code":-32602,"message":"Unknown tool: echo"}}';
  const because = 'because '.repeat(1_000);
  const challenge = 'Bearer error="invalid_token", error_description="The token has expired"';
  it.each<[string, string, string, RegExp, number?]>([
    ['HTML', 'text/html', SIGN_IN, /answered 200 with text\/html that is no message: <html><title>Sign in/],
    ['nothing', JSON_TYPE, '', /answered 200 with application\/json that is no message: nothing/],
    ['broken JSON', JSON_TYPE, '{"jsonrpc":', /no message: \{"jsonrpc":/],
    [
      'another answer',
      JSON_TYPE,
      '{"jsonrpc":"2.0","id":99,"result":{}}',
      /without a response to the request/,
    ],
    ['a text as result', JSON_TYPE, '{"jsonrpc":"2.0","result":"fine"}', /with "fine", not with an object/],
    ['an error in text', JSON_TYPE, '{"jsonrpc":"2.0","error":"no quota"}', /no quota/],
    ['an error', JSON_TYPE, unknownTool, /Unknown tool: echo/],
    ['a stream without a response', STREAM, ': ping\n\n', /ended its answer without a result/],
    ['an empty stream', STREAM, '', /ended its answer without a result/],
    ['a failure', 'text/plain', because, /it answered 500: because because/, 500],
    ['a refusal', 'text/plain', because, /it answered 403: because because/, 403],
    // Spring Security and ASP.NET Core send no body: langchain-ai/langchainjs-mcp-adapters#76.
    ['a challenge', 'text/plain', '', /it answered 401: Bearer error="invalid_token", .* has expired"/, 401],
  ])('that is none fails at once: %s', async (_, type, body, reason, status = 200) => {
    await connectTo(({ response: answer }) => {
      const shown = status === 401 ? { 'www-authenticate': challenge } : {};
      answer.writeHead(status, { 'content-type': type, ...shown }).end(body);
    });
    const error: unknown = await callEcho().catch((caught: unknown) => caught);
    expect(String(error)).toMatch(reason);
    expect(String(error).length).toBeLessThan(1_000);
    server.answers.delete('tools/call');
    expect(await callEcho()).toBe('{"text":"hi"}');
  });

  it.each(['json', 'sse'] as const)('that breaks off fails at once: %s', async (kind) => {
    await connectTo(({ response: answer, request }) => {
      answer.writeHead(200, { 'content-type': kind === 'json' ? 'application/json' : 'text/event-stream' });
      answer.write(kind === 'json' ? '{"jsonrpc":' : ': begin\n\n', () => request.socket.destroy());
    });
    await expect(callEcho()).rejects.toThrow(/terminated|without a result/);
    server.answers.delete('tools/call');
    expect(await callEcho()).toBe('{"text":"hi"}');
  });

  it.each(['application/json', 'text/event-stream'])(
    'without an end is not kept in memory: %s',
    async (type) => {
      await connectTo(({ response: answer }) => {
        answer.writeHead(200, { 'content-type': type });
        const part = 'x'.repeat(1024 * 1024);
        const write = (): void => {
          if (!answer.destroyed) {
            answer.write(part, write);
          }
        };
        write();
      });
      await expect(callEcho()).rejects.toThrow('it sent an answer that is too large');
    },
  );
});

describe('a slow server', () => {
  it('is waited for no longer than the time-out of its start, also with its list', async () => {
    server.answers.set('tools/list', () => undefined);
    expect(await connect(500)).toMatchObject([
      { code: 'McpServerUnavailable', detail: expect.stringContaining('no response within 0.5 s') },
    ]);
  });

  it('is told that a call is not waited for any more', async () => {
    await connect();
    const interruption = new AbortController();
    server.answers.set('tools/call', () => interruption.abort());
    await expect(callEcho(interruption.signal)).rejects.toThrow('interrupted');
    await until(() => server.count('notifications/cancelled') === 1);
    const [call] = server.messages.filter(({ method }) => method === 'tools/call');
    expect(server.messages.at(-1)?.params).toMatchObject({ requestId: call?.id });
  });
});

// A server that gets no answer to its own request waits for ever.
it('a request of the server is answered: ping, and that there is nothing else', async () => {
  await connectTo(async ({ message, response: answer }) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    const asked = ['ping', 'roots/list', 'sampling/createMessage', 'elicitation/create'];
    asked.forEach((method, index) => answer.write(event({ jsonrpc: '2.0', id: 100 + index, method })));
    await until(() => server.messages.filter(({ method }) => method === undefined).length === asked.length);
    answer.end(event(response(message)));
  });
  expect(await callEcho()).toBe('done');
  const answers = server.messages.filter(({ method }) => method === undefined);
  expect(answers.toSorted((a, b) => Number(a.id) - Number(b.id))).toMatchObject([
    { id: 100, result: {} },
    ...[101, 102, 103].map((id) => ({ id, error: { code: -32_601 } })),
  ]);
});

describe('a version of the protocol', () => {
  it.each(['2024-11-05', '2025-11-25'])('that is known is spoken: %s', async (version) => {
    const versions: unknown[] = [];
    server.intercept = ({ headers }) => {
      versions.push(headers['mcp-protocol-version']);
      return false;
    };
    server.answers.set('initialize', {
      protocolVersion: version,
      capabilities: { tools: null, prompts: { listChanged: null } },
      serverInfo: { name: 'old', version: '1' },
      instructions: null,
    });
    expect(await connect()).toEqual([]);
    expect(await callEcho()).toBe('{"text":"hi"}');
    expect(new Set(versions.slice(1))).toEqual(new Set([version]));
  });

  it('that is not known is named', async () => {
    server.answers.set('initialize', {
      protocolVersion: '2099-01-01',
      capabilities: {},
      serverInfo: { name: 'new', version: '1' },
    });
    expect(await connect()).toMatchObject([{ detail: expect.stringContaining('2099-01-01') }]);
  });
});

it('the end of a conversation ends its sessions', async () => {
  await connect();
  await toolbox.close();
  expect(server.sessions.size).toBe(0);
  expect(server.requests.at(-1)?.method).toBe('DELETE');
});
