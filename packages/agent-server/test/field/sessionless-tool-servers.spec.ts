import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { event, ScriptedMcpServer, tool } from '../fakes/mcp-servers/scripted-mcp-server.js';
import type { MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder, type Script } from '../fakes/scripted-llm.js';
import { until } from '../../../../test/support/until.js';
import { codesOf, expectTold, nativeAgent, resultsOf, scriptedProgram } from './native-agent.js';

// github/app#3582, lossless-claude/lcm#428: revision 2026-07-28 has neither a handshake nor sessions, and its SDKs let
// servers refuse the handshake of the earlier ones.

const REVISION = '2026-07-28';
const UNSUPPORTED = {
  code: -32_022,
  message: 'Unsupported protocol version: 2025-11-25',
  data: { supported: [REVISION], requested: '2025-11-25' },
};

const COMPLETE = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] };

const agent = nativeAgent();
let server: ScriptedMcpServer;
/** Where the server announces changes. */
let streams: ServerResponse[];

beforeEach(async () => {
  server = await ScriptedMcpServer.start();
  server.sessions.add('');
  streams = [];
  server.intercept = ({ method }, response) => {
    if (method === 'GET') {
      response.writeHead(405).end();
    }
    return method === 'GET';
  };
  refuseHandshake(400, UNSUPPORTED);
  server.answers.set('server/discover', {
    ...whole,
    supportedVersions: [REVISION],
    capabilities: { tools: { listChanged: true } },
  });
  server.answers.set('tools/list', ({ message: { id }, response }) => {
    json(response, 200, { id, result: { ...whole, tools: server.tools } });
  });
  server.answers.set('tools/call', COMPLETE);
  server.answers.set('subscriptions/listen', ({ message: { id, params }, response }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(
      announcement(id, 'subscriptions/acknowledged', { notifications: params?.['notifications'] }),
    );
    streams.push(response);
  });
});
afterEach(async () => {
  await agent.forget();
  await server.close();
});

const whole = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

function json(response: ServerResponse, status: number, message: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

function refuseHandshake(status: number, error: object): void {
  server.answers.set('initialize', ({ message: { id }, response }) => json(response, status, { id, error }));
}

function announcement(id: unknown, method: string, params: object = {}): string {
  const meta = { 'io.modelcontextprotocol/subscriptionId': id };
  return event({ jsonrpc: '2.0', method: `notifications/${method}`, params: { ...params, _meta: meta } });
}

function announceTools(...names: string[]): void {
  server.tools = names.map((name) => tool(name));
  streams.at(-1)?.write(announcement(`listen:${streams.length - 1}`, 'tools/list_changed'));
}

async function run(script: Script, mcpConfig?: McpServers): Promise<MemoryEngineHost> {
  return await agent.run(script, { mcpConfig: mcpConfig ?? { far: { url: server.url, transport: 'http' } } });
}

const DONE = [COMPLETE.content];
const echo = call('echo', { text: 'hi' });

describe('a tool server without a handshake', () => {
  it.each([
    ['names its revision', 400, UNSUPPORTED],
    ['does not know the method', 404, { code: -32_601, message: 'Method not found: initialize' }],
    ['does not know the method, in an answer', 200, { code: -32_601, message: 'Method not found' }],
  ])('is used by its revision: it %s', async (_, status, error) => {
    refuseHandshake(status, error);
    const host = await run(inOrder(echo, say('done')));
    expect(codesOf(host)).toEqual([]);
    expect(resultsOf(host)).toEqual(DONE);
    expect(server.messages.at(-1)?.params?.['_meta']).toMatchObject({
      'io.modelcontextprotocol/protocolVersion': REVISION,
    });
  });

  it('is used by its revision: a program that ends with the refusal', async () => {
    const near = scriptedProgram('has no handshake');
    const host = await run(inOrder(call('act', {}), say('done')), { near });
    expect(codesOf(host)).toEqual([]);
    expect(resultsOf(host)).toEqual(DONE);
  });

  it('costs no tool and no part for another one that is wrong', async () => {
    const echoed = tool('echo', { description: null, inputSchema: { type: 'string' } });
    server.tools = [echoed, { name: 7 }, tool('more')];
    server.answers.set('tools/list', { tools: server.tools, nextCursor: 7 });
    server.answers.set('tools/call', {
      content: ['done', { type: 'hologram' }],
      isError: 'no',
      structuredContent: ['done'],
    });
    const host = await run(inOrder(echo, say('done')));
    expect(codesOf(host)).toEqual(['McpToolsAdjusted', 'ToolSchemaRepaired']);
    expect(agent.llm.requests[0]?.tools).toEqual(expect.arrayContaining(['echo', 'more']));
    expect(resultsOf(host)).toEqual([
      [
        { type: 'text', text: 'done' },
        { type: 'text', text: '{"type":"hologram"}' },
      ],
    ]);
  });

  it('is told by its refusal if it knows no revision of ours', async () => {
    server.answers.set('server/discover', ({ message: { id }, response }) => {
      const data = { supported: ['2099-01-01'], requested: REVISION };
      json(response, 400, { id, error: { ...UNSUPPORTED, data } });
    });
    const host = await run(inOrder(say('done')));
    expectTold(host, 'McpServerUnavailable', 'Unsupported protocol version: 2025-11-25', 'finished');
  });

  it('announces changes of its list, also after the stream of announcements was closed', async () => {
    const host = await run(async ({ index, tools }) => {
      await until(() => streams.length > 0);
      if (index === 0) {
        announceTools('echo', 'news');
      } else if (tools.includes('news') && streams.length === 1) {
        streams[0]?.end();
      } else if (streams.length === 2) {
        announceTools('echo', 'later');
      }
      return tools.includes('later') ? say('done') : call('echo', { text: `${index}` });
    });
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual(['McpToolsChanged', 'McpToolsChanged']);
  });

  it('loses no call when the stream of announcements is closed', async () => {
    server.answers.set('tools/call', async ({ message: { id }, response }) => {
      await until(() => streams.length > 0);
      const [stream] = streams;
      stream?.end(() => {
        json(response, 200, { id, result: COMPLETE });
      });
    });
    const host = await run(inOrder(echo, say('done')));
    expect(resultsOf(host)).toEqual(DONE);
  });
});
