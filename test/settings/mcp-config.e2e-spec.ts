import { beforeEach, describe, expect, it } from '@jest/globals';
import { toDto } from '@slipway/api/validation/field.js';
import { McpConfigDto } from '@slipway/tool-servers/mcp-config.dto.js';
import { McpConfigRepository } from '../../src/settings/mcp/mcp-config.repository.js';
import { McpConfigService } from '../../src/settings/mcp/mcp-config.service.js';
import { SettingsClient } from '../support/settings-client.js';
import { untilBlocked } from '../support/until-blocked.js';
import { commandServer, remoteServer } from '../support/sample-tool-servers.js';
import { useTestApp } from '../support/use-test-app.js';

const SSE_URL = 'https://sse.example.com';
const MASK = '**********';

const CONFIG = {
  sse_servers: [{ url: SSE_URL, api_key: 'hush-sse' }, 'https://open.example.com'],
  stdio_servers: [
    { name: 'files', command: 'npx', args: ['-y', 'files'], env: { TOKEN: 'hush-token', MODE: 'hush-mode' } },
  ],
  shttp_servers: [{ url: 'wss://shttp.example.com', api_key: 'hush-shttp', timeout: 5 }],
};

const SHOWN = {
  sse_servers: [
    { url: SSE_URL, api_key: MASK },
    { url: 'https://open.example.com', api_key: null },
  ],
  stdio_servers: [{ name: 'files', command: 'npx', args: ['-y', 'files'], env: { TOKEN: MASK, MODE: MASK } }],
  shttp_servers: [{ url: 'wss://shttp.example.com', api_key: MASK }],
};

const FILES = commandServer('files', {
  args: ['-y', 'files'],
  env: new Map([
    ['TOKEN', 'hush-token'],
    ['MODE', 'hush-mode'],
  ]),
});

const CLEAR = [
  FILES,
  remoteServer(SSE_URL, { transport: 'sse', apiKey: 'hush-sse' }),
  remoteServer('https://open.example.com', { transport: 'sse' }),
  remoteServer('wss://shttp.example.com', { apiKey: 'hush-shttp' }),
];

describe('MCP configuration', () => {
  const app = useTestApp({ OUTBOUND_ALLOWLIST: '*.example.com,*.allowed.example,http://127.0.0.1:9101' });
  let client: SettingsClient;

  beforeEach(async () => {
    client = new SettingsClient(app, await app.createUser());
  });

  const read = async (): ReturnType<McpConfigRepository['read']> =>
    app.app.get(McpConfigRepository).read(client.user.id);
  const shown = async (): Promise<unknown> => (await client.stored())['mcp_config'];

  it('keeps which tools agents get, and how long a start may take, also for clients that do not know that', async () => {
    const [url, name] = ['https://tools.example.com', 'tools'];
    const known = { url, tools: ['search', 'read_file'], start_timeout_seconds: 20 };
    const program = { name, command: 'npx', tools: ['list'], start_timeout_seconds: 900 };
    await client.store({ mcp_config: { shttp_servers: [known], stdio_servers: [program] } });
    const expected = {
      sse_servers: [],
      stdio_servers: [{ ...program, args: [], env: {} }],
      shttp_servers: [{ ...known, api_key: null }],
    };
    expect(await shown()).toEqual(expected);
    // As the web application of others saves it, and as one sends back what it got.
    await client.store({
      mcp_config: { shttp_servers: [{ url }], stdio_servers: [{ name, command: 'npx' }] },
    });
    expect(await shown()).toEqual(expected);
    await client.store({ mcp_config: expected });
    const { url: _, ...details } = known;
    expect(await read()).toContainEqual(remoteServer(url, { details }));
    await client.store({
      mcp_config: {
        shttp_servers: [{ url, tools: null, start_timeout_seconds: null }],
        stdio_servers: [{ name, command: 'npx', tools: [] }],
      },
    });
    expect(await shown()).toEqual({
      ...expected,
      stdio_servers: [{ ...program, args: [], env: {}, tools: [] }],
      shttp_servers: [{ url, api_key: null }],
    });
  });

  it('takes servers by name, as other programs keep them, in place of the lists', async () => {
    const files = { command: 'npx', args: ['-y', 'files'], env: { TOKEN: 'hush-token' } };
    const remote = {
      type: 'http',
      url: 'https://shttp.example.com',
      headers: { Authorization: 'Bearer hush' },
    };
    await client.store({ mcp_config: CONFIG });
    await client.store({ mcp_config: { mcpServers: { files, remote } } });
    expect(await shown()).toEqual({
      sse_servers: [],
      stdio_servers: [{ name: 'files', command: 'npx', args: ['-y', 'files'], env: { TOKEN: MASK } }],
      shttp_servers: [{ url: remote.url, api_key: MASK }],
    });
    for (const [mcpConfig, loc] of [
      [{ mcpServers: { files }, sse_servers: [] }, 'sse_servers'],
      [{ mcpServers: { files: { args: [] } } }, 'mcpServers'],
    ] as const) {
      const { body } = await app.as(client.user).post('/api/settings', { mcp_config: mcpConfig }).expect(422);
      expect(body.detail[0].loc.slice(0, 3)).toEqual(['body', 'mcp_config', loc]);
    }
  });

  it('shows masks for secrets, and keeps everything when a client sends back what it got', async () => {
    await client.store({ mcp_config: CONFIG });
    expect(await shown()).toEqual(SHOWN);
    await client.store(await client.stored());
    await app
      .as(client.user)
      .post('/api/add-git-providers', { mcp_config: await shown() })
      .expect(200);

    expect(await read()).toEqual(CLEAR);
  });

  it('replaces the whole configuration, and keeps it when it is left out', async () => {
    await client.store({ mcp_config: CONFIG });
    await client.store({
      mcp_config: { stdio_servers: [{ ...SHOWN.stdio_servers[0], env: { MODE: MASK, NEW: 'hush-new' } }] },
    });
    await client.store({ language: 'en' });

    const env = new Map([
      ['MODE', 'hush-mode'],
      ['NEW', 'hush-new'],
    ]);
    expect(await read()).toEqual([{ ...FILES, env }]);
  });

  it('never takes a secret from another user', async () => {
    await client.store({ mcp_config: CONFIG });
    const other = new SettingsClient(app, await app.createUser());

    const response = await other.post({ mcp_config: SHOWN });

    expect(response.status).toBe(422);
    expect(response.body.detail).toHaveLength(4);
  });

  it('takes turns: a mask stands for the newest secret, stored by a request that is not over yet', async () => {
    await client.store({ mcp_config: CONFIG });
    const { masked } = await app.dataSource.transaction(async (manager) => {
      const newest = toDto(McpConfigDto, { sse_servers: [{ url: SSE_URL, api_key: 'hush-newest' }] });
      await app.app.get(McpConfigService).store(manager, client.user.id, newest, []);
      const later = client.post({ mcp_config: { sse_servers: [{ url: SSE_URL, api_key: MASK }] } });
      await untilBlocked(app.dataSource);
      return { masked: later };
    });

    expect((await masked).status).toBe(200);
    expect(await read()).toMatchObject([{ apiKey: 'hush-newest' }]);
  });

  describe('with OUTBOUND_ALLOWLIST', () => {
    it('names every other server', async () => {
      const { status, body } = await client.post({
        mcp_config: {
          sse_servers: ['https://a.allowed.example', 'https://169.254.169.254/'],
          shttp_servers: ['ws://a.allowed.example'],
        },
        llm_base_url: 'https://llm.other.example',
      });

      expect(status).toBe(422);
      expect(body).toMatchObject({
        detail: [
          { loc: ['body', 'llm_base_url'], type: 'value_error' },
          { loc: ['body', 'mcp_config', 'sse_servers', '1', 'url'], type: 'value_error' },
          { loc: ['body', 'mcp_config', 'shttp_servers', '0', 'url'], type: 'value_error' },
        ],
      });
    });

    it('is asked by every way in', async () => {
      await app
        .as(client.user)
        .post('/api/add-git-providers', { mcp_config: { sse_servers: ['https://other.example'] } })
        .expect(422);
    });
  });
});
