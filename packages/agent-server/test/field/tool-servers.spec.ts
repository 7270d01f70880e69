import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { event, ScriptedMcpServer, tool } from '../fakes/mcp-servers/scripted-mcp-server.js';
import type { MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder, type Script } from '../fakes/scripted-llm.js';
import { RemoteMcpServer } from '../fakes/mcp-servers/remote-mcp-server.js';
import { until } from '../../../../test/support/until.js';
import { codesOf, detailsOf, expectDone, nativeAgent, resultsOf } from './native-agent.js';

const agent = nativeAgent();
let server: ScriptedMcpServer;

beforeEach(async () => {
  server = await ScriptedMcpServer.start();
});
afterEach(async () => {
  await agent.forget();
  await server.close();
});

function far(changes: Partial<McpServers[string]> = {}): McpServers {
  return { far: { url: server.url, transport: 'http', ...changes } };
}

const echo = call('echo', { text: 'hi' });
const HI = [[{ type: 'text', text: '{"text":"hi"}' }]];

async function run(script: Script, mcpConfig = far()): Promise<MemoryEngineHost> {
  return await agent.run(script, { mcpConfig });
}

/** The tools of the server that the model was offered with a request. */
function offered(index = 0): string[] {
  const builtIn = ['terminal', 'file_editor', 'task_tracker', 'think', 'finish'];
  const tools = agent.llm.requests[index]?.tools ?? [];
  return tools.filter((name) => !builtIn.includes(name));
}

/** Has the server answer all requests so. */
function answerAll(status: number, headers: Record<string, string>, body = ''): void {
  server.intercept = (_, response) => {
    response.writeHead(status, headers).end(body);
    return true;
  };
}

/** Has the server answer a method with a result, or an error, of its own making. */
function answerWith(method: string, answer: () => object): void {
  server.answers.set(method, ({ message, response }) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer() }));
  });
}

// modelcontextprotocol/python-sdk#3556, modelcontextprotocol/rust-sdk#733, PrefectHQ/fastmcp#3073 ("No valid session ID"):
// after a restart of the server every call fails.
describe('a session that the server has forgotten', () => {
  it.each([
    [404, 'Session not found'],
    [404, ''],
    [400, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID"},"id":null}'],
  ])('is replaced, and the call is made once more (%d %s)', async (status, body) => {
    server.refusal = { status, body };
    const host = await run(({ index }) => {
      server.sessions.clear();
      return index === 0 ? echo : say('done');
    });
    expectDone(host);
    expect(resultsOf(host)).toEqual(HI);
    expect(server.count('initialize')).toBe(2);
    expect(server.count('tools/call')).toBe(1);
    expect(server.requests.filter(({ session }) => session === undefined)).toHaveLength(2);
  });

  it('is replaced once: a server that forgets each one is told to the model', async () => {
    server.answers.set('tools/call', ({ response }) => {
      response.writeHead(404).end('Session not found');
    });
    const host = await run(inOrder(echo, say('a pity')));
    expect(resultsOf(host)).toEqual([expect.stringContaining('Session not found')]);
    expect(server.count('tools/call')).toBe(2);
    expect(host.status).toBe('finished');
  });

  it('is something else than a refusal of the request', async () => {
    server.answers.set('tools/call', ({ response }) => {
      response.writeHead(400).end('Bad Request: text is missing');
    });
    const host = await run(inOrder(echo, say('a pity')));
    expect(resultsOf(host)).toEqual([expect.stringContaining('text is missing')]);
    expect(server.count('initialize')).toBe(1);
  });
});

// mastra-ai/mastra#21859, mastra-ai/mastra#23731, Kuadrant/mcp-gateway#662: one bad tool hides all.
describe('a tool that is wrong', () => {
  const without = /“bad” is offered without arguments/;
  it.each<[string, unknown, string[], RegExp]>([
    ['no inputSchema', { name: 'bad', description: 'x' }, ['bad', 'echo'], without],
    ['a schema that is null', tool('bad', { inputSchema: null }), ['bad', 'echo'], without],
    ['a schema that is a text', tool('bad', { inputSchema: 'none' }), ['bad', 'echo'], without],
    ['a schema that is a list', tool('bad', { inputSchema: [] }), ['bad', 'echo'], without],
    ['a bad name', tool('bad.tool/é'), ['bad_tool__', 'echo'], /“bad\.tool\/é” is offered by a name/],
    ['a long name', tool('n'.repeat(200)), ['echo', 'n'.repeat(64)], /“n{80}…” is offered by a name/],
    ['no name', tool('', { name: undefined }), ['echo'], /entry 1 of its list was left out: it has no name/],
    ['a name that is a number', tool('', { name: 7 }), ['echo'], /entry 1 .* has no name/],
    ['null', null, ['echo'], /entry 1 .* has no name/],
    ['a name twice', tool('echo', { description: 'first' }), ['echo'], /a second tool “echo” was left out/],
  ])('costs no other one: %s', async (_, bad, names, problem) => {
    server.tools = [bad, tool('echo')];
    const host = await run(inOrder(echo, say('done')));
    expect(offered().toSorted()).toEqual(names);
    expect(resultsOf(host)).toEqual(HI);
    expect(codesOf(host)).toEqual(['McpToolsAdjusted']);
    expect(detailsOf(host)[0]).toMatch(problem);
    expect(detailsOf(host)[0]).toContain(`the tool server far (${server.url})`);
    expect(host.status).toBe('finished');
    // It is worth knowing once.
    await agent.goOn(host);
    expect(codesOf(host)).toHaveLength(1);
  });

  it('is not worth a word if nothing of it is lost', async () => {
    server.tools = [
      tool('plain', { description: null, title: null, annotations: null, outputSchema: null, icons: 7 }),
    ];
    const host = await run(inOrder(say('done')));
    expect(offered()).toEqual(['plain']);
    expect(codesOf(host)).toEqual([]);
  });

  it('is called by the name that its server knows', async () => {
    server.tools = [tool('files.read')];
    await run(inOrder(call('files_read', {}), say('done')));
    expect(server.messages.find(({ method }) => method === 'tools/call')?.params).toMatchObject({
      name: 'files.read',
    });
  });
});

describe('a list of tools', () => {
  it('may have pages', async () => {
    answerWith('tools/list', () => {
      const page = Number(server.messages.at(-1)?.params?.['cursor'] ?? 0);
      return { result: { tools: [tool(`t${page}`)], nextCursor: page === 3 ? null : `${page + 1}` } };
    });
    const host = await run(inOrder(say('done')));
    expect(offered()).toEqual(['t0', 't1', 't2', 't3']);
    expect(codesOf(host)).toEqual([]);
  });

  it.each([
    ['with one cursor', () => 'again'],
    ['with new cursors', (page: number) => `c${page}`],
  ])('may have no end: %s', async (_, cursor) => {
    let page = 0;
    answerWith('tools/list', () => {
      page += 1;
      return { result: { tools: [tool(`t${page}`)], nextCursor: cursor(page) } };
    });
    const host = await run(inOrder(say('done')));
    expect(page).toBeLessThanOrEqual(101);
    expect(offered().length).toBe(page);
    expect(detailsOf(host)).toEqual([expect.stringContaining('has no end')]);
  });

  it('may be missing where a server has no tools', async () => {
    answerWith('tools/list', () => ({ error: { code: -32_601, message: 'Method not found' } }));
    const host = await run(inOrder(say('done')));
    expectDone(host);
  });

  it('can be limited by the user', async () => {
    server.tools = [tool('a'), tool('b'), tool('c')];
    const host = await run(inOrder(say('done')), far({ tools: ['c', 'a', 'gone'] }));
    expect(offered()).toEqual(['a', 'c']);
    const gone = 'it has no tool “gone”, which the settings allow';
    expect(detailsOf(host)).toEqual([expect.stringContaining(gone)]);
    await run(inOrder(say('done')), far({ tools: ['*'] }));
    expect(offered()).toEqual(['a', 'b', 'c']);
  });
});

// The two transports over HTTP are confused again and again; the specification tells clients to try the other one.
describe('a server of the other transport', () => {
  it.each(['http', 'sse'] as const)('is understood: configured as %s', async (transport) => {
    const remote = await RemoteMcpServer.start();
    const url = transport === 'http' ? remote.sseUrl : remote.httpUrl;
    const host = await run(inOrder(call('add', { a: 1, b: 2 }), say('done')), { far: { url, transport } });
    await agent.forget();
    await remote.close();
    expect(codesOf(host)).toEqual([]);
    expect(resultsOf(host)).toEqual([[{ type: 'text', text: '3' }]]);
  });

  it('is none if both are refused: the configured one is told', async () => {
    server.intercept = ({ method }, response) => {
      response.writeHead(404).end(`no ${method} here`);
      return true;
    };
    const host = await run(inOrder(say('done')));
    const refused = 'cannot be used: it answered 404: no POST here';
    expect(detailsOf(host)).toEqual([expect.stringContaining(refused)]);
  });
});

// An old transport whose stream is also its session.
it('a stream that breaks ends the session, and another one begins', async () => {
  const remote = await RemoteMcpServer.start();
  const host = await run(
    ({ index }) => {
      if (index === 0) {
        remote.dropConnections();
      }
      return index < 3 ? call('add', { a: index, b: 2 }) : say('done');
    },
    { far: { url: remote.sseUrl, transport: 'sse' } },
  );
  expect(codesOf(host)).toEqual([]);
  expect(resultsOf(host).at(-1)).toEqual([{ type: 'text', text: '4' }]);
  await agent.forget();
  await remote.close();
});

// anthropics/claude-code#13646, openai/codex#10105, maximhq/bifrost#6885: changes of the list are ignored.
describe('a list that changes', () => {
  const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
  /** Says it during the next call, and goes on with the conversation. */
  const goOnChanged = async (host: MemoryEngineHost, script: Script, change: () => void): Promise<void> => {
    server.answers.set('tools/call', ({ message, response }) => {
      change();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event(changed));
      response.end(event({ jsonrpc: '2.0', id: message.id, result: { content: [] } }));
    });
    agent.llm.script = script;
    agent.llm.requests.length = 0;
    await agent.goOn(host, 'Go on.');
  };

  it('is read again before the next call of the model', async () => {
    const host = await run(inOrder(echo, say('done')));
    expect(offered(1)).toEqual(['echo']);
    await goOnChanged(host, inOrder(call('echo', {}), call('news', {}), say('done')), () => {
      server.tools = [tool('news')];
    });
    expect([offered(0), offered(1)]).toEqual([['echo'], ['news']]);
    expect(codesOf(host)).toEqual(['McpToolsChanged']);
    expect(detailsOf(host)[0]).toContain('added news; removed echo');
  });

  it('is read again for a notification on the open stream too', async () => {
    const script: Script = async ({ index, tools }) => {
      await until(() => server.listeners > 0);
      if (index === 0) {
        server.tools = [tool('echo'), tool('news')];
        server.push(changed);
      }
      return tools.includes('news') ? say('done') : call('echo', { text: `${index}` });
    };
    const host = await agent.run(script, { mcpConfig: far() });
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual(['McpToolsChanged']);
  });

  it('keeps the tools from before if it cannot be read', async () => {
    const host = await run(({ index }) => (index === 0 ? echo : say('done')));
    await goOnChanged(host, inOrder(echo, say('done')), () => {
      server.answers.set('tools/list', ({ response }) => {
        response.writeHead(500).end('the database is away');
      });
    });
    expect(offered(1)).toEqual(['echo']);
    expect(codesOf(host)).toEqual(['McpToolsNotListed']);
    expect(detailsOf(host)[0]).toContain('the database is away');
    expect(host.status).toBe('finished');
  });
});

// modelcontextprotocol/python-sdk#1168, PrefectHQ/fastmcp#1867: the form with a slash is elsewhere.
describe('a redirect', () => {
  it.each([301, 302, 307, 308])('within the origin is followed with its method: %d', async (status) => {
    server.intercept = (request, response) => {
      if (request.url?.startsWith('/mcp/')) {
        return false;
      }
      response.writeHead(status, { location: '/mcp/' }).end();
      return true;
    };
    const host = await run(inOrder(echo, say('done')));
    expect(resultsOf(host)).toEqual(HI);
    expect(codesOf(host)).toEqual([]);
  });

  it('to another origin is not followed', async () => {
    const other = await RemoteMcpServer.start();
    answerAll(307, { location: other.httpUrl });
    const host = await run(inOrder(say('done')));
    expect(other.requests).toEqual([]);
    await other.close();
    expect(codesOf(host)).toEqual(['McpServerUnavailable']);
    expect(detailsOf(host)[0]).toContain(`redirects to ${new URL(other.httpUrl).origin}`);
    expect(host.status).toBe('finished');
  });

  it('without an end is not followed for ever', async () => {
    answerAll(307, { location: '/mcp' });
    const host = await run(inOrder(say('done')));
    expect(server.requests.length).toBeLessThan(10);
    expect(detailsOf(host)[0]).toContain('redirects too often');
  });
});

// "fetch failed" is all that is said.
describe('a server that cannot be reached', () => {
  const CLOSED = '127.0.0.1:9';
  it.each([
    [
      `http://user:hidden-word@${CLOSED}/s/1234567890abcdef1234/mcp?key=hidden-word`,
      `(http://${CLOSED}/s/…/mcp)`,
      '',
    ],
    ['http://127.0.0.1:9/mcp', '(http://127.0.0.1:9/mcp)', ' bad port'],
    ['http://127.0.0.1:65123/mcp', '(http://127.0.0.1:65123/mcp)', 'ECONNREFUSED'],
    ['http://no-such-host.invalid/mcp', '(http://no-such-host.invalid/mcp)', 'no-such-host.invalid'],
  ])('is named, with the cause: %s', async (url, address, cause) => {
    for (const transport of ['http', 'sse'] as const) {
      const host = await run(inOrder(say('done')), { far: { url, transport } });
      expect(codesOf(host)).toEqual(['McpServerUnavailable']);
      expect(detailsOf(host)[0]).toContain(`The tool server far ${address} cannot be used: `);
      expect(detailsOf(host)[0]).toContain(cause);
      expect(detailsOf(host)[0]).not.toContain('hidden-word');
      expect(host.status).toBe('finished');
    }
  });

  it.each(['http', 'sse'] as const)('is named with the words of its refusal: %s', async (transport) => {
    answerAll(401, {}, '{"error":"invalid_token"}');
    const host = await run(inOrder(say('done')), far({ transport }));
    expect(detailsOf(host)).toEqual([expect.stringMatching(/it answered 401: \{"error":"invalid_token"\}/)]);
  });

  it('is named for a tool of ours as well', async () => {
    const host = await agent.run(inOrder(call('web_search', { query: 'x' }), say('done')), {
      searchApiKey: 'key-of-the-search',
      tavilyApiUrl: 'http://127.0.0.1:65123',
    });
    expect(resultsOf(host)).toEqual([expect.stringContaining('fetch failed: connect ECONNREFUSED')]);
  });
});
