import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RemoteMcpServer } from './fakes/mcp-servers/remote-mcp-server.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

describe('a tool server that is tried', () => {
  const server = useAgentServer(startTestAgentServer);
  let mcp: RemoteMcpServer;

  beforeAll(async () => {
    mcp = await RemoteMcpServer.start();
  });
  afterAll(() => mcp.close());

  const tryServer = async (candidate: unknown, members: Record<string, unknown> = {}) =>
    await server.client.post('/api/mcp/test', { server: candidate, ...members });

  it.each(['shttp', 'http', 'streamable-http', 'sse'])('has its tools listed: %s', async (type) => {
    const url = type === 'sse' ? mcp.sseUrl : mcp.httpUrl;
    const { status, body } = await tryServer({ type, url });
    expect(status).toBe(200);
    expect(body).toMatchObject({ ok: true, tools: expect.arrayContaining(['add', 'refuse']) });
    expect(body).not.toHaveProperty('tool_result');
  });

  it('is signed in to, and may be written as settings have it', async () => {
    const auth = { strategy: 'api_key', value: 'a-key', header_name: 'X-Key' };
    expect((await tryServer({ url: mcp.httpUrl, transport: 'http', auth })).body).toMatchObject({ ok: true });
    expect(mcp.requests.at(-1)?.headers['x-key']).toBe('a-key');
  });

  it('has one tool called, whose words are reported as they are', async () => {
    const call = (name: string, args: object) => ({ tool_call: { name, arguments: args } });
    const remote = { type: 'http', url: mcp.httpUrl };
    expect((await tryServer(remote, call('add', { a: 1, b: 2 }))).body).toMatchObject({
      ok: true,
      tool_result: { is_error: false, text: '3' },
    });
    expect((await tryServer(remote, call('refuse', {}))).body).toMatchObject({
      ok: true,
      tool_result: { is_error: true, text: 'no' },
    });
  });

  it.each([
    ['a program that is missing', { type: 'stdio', command: 'no-such-program' }, {}, 'connection'],
    ['a program that says nothing', { command: 'sleep', args: ['1000'] }, { timeout: 0.2 }, 'timeout'],
    ['an address where none is', { type: 'http', url: 'http://127.0.0.1:9/mcp' }, {}, 'connection'],
  ])('says why it cannot be used: %s', async (_name, candidate, members, kind) => {
    expect(await tryServer(candidate, members)).toEqual({
      status: 200,
      body: { ok: false, error: expect.stringMatching(/./), error_kind: kind },
    });
  });

  it('is not called where the conversations may not call it', async () => {
    await server.restart();
    await server.client.start({ slipway: { outbound_allowlist: ['mcp.example.com'] } });
    const before = mcp.requests.length;
    const { body } = await tryServer({ type: 'http', url: mcp.httpUrl });
    expect(body).toMatchObject({ ok: false, error: expect.stringContaining('OUTBOUND_ALLOWLIST') });
    expect(mcp.requests.length).toBe(before);
    await server.restart();
  });

  it.each([
    ['no server', {}],
    ['neither command nor address', { server: { type: 'http' } }],
    ['too long a time', { server: { command: 'true' }, timeout: 121 }],
  ])('must be a server: %s', async (_name, body) => {
    expect(await server.client.post('/api/mcp/test', body)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: expect.arrayContaining(['body']) }] },
    });
  });
});
