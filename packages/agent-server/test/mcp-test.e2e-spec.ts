import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import path from 'node:path';
import { RemoteMcpServer } from './fakes/mcp-servers/remote-mcp-server.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const STDIO = path.resolve('packages/agent-server/test/fakes/mcp-servers/stdio-server.mjs');

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

  it('has its tools listed: a program', async () => {
    const program = { type: 'stdio', command: process.execPath, args: [STDIO] };
    expect((await tryServer(program)).body).toMatchObject({
      ok: true,
      tools: expect.arrayContaining(['shout']),
    });
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

  it('is taken from a start as the SDK writes it', async () => {
    const auth = { strategy: 'bearer', value: 'token' };
    const calculator = { url: mcp.httpUrl, command: null, auth, enabled: true };
    const agent = {
      kind: 'Agent',
      llm: { model: 'openai/fake', api_key: 'k' },
      mcp_config: { calculator, off: { url: mcp.httpUrl, enabled: false } },
    };
    const id = await server.client.start({ agent });
    const settings = await server.client.answerTo(id, 'settings');
    expect(JSON.parse(String(settings))).toMatchObject({
      mcpConfig: { calculator: { url: mcp.httpUrl, transport: 'http', headers: expect.anything() } },
    });
    expect(String(settings)).not.toContain('"off"');
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
    [
      'a way to sign in that needs a browser',
      { server: { url: 'https://a.example', auth: { strategy: 'oauth2' } } },
    ],
    ['too long a time', { server: { command: 'true' }, timeout: 121 }],
    ['a server that is no object', { server: 'npx' }],
  ])('must be a server: %s', async (_name, body) => {
    expect(await server.client.post('/api/mcp/test', body)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: expect.arrayContaining(['body']) }] },
    });
  });
});
