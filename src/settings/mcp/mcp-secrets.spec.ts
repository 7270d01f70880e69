import { describe, expect, it } from '@jest/globals';
import { MASK } from '@slipway/common/secret-mask.js';
import { toDto } from '../../common/validation/field.js';
import { McpConfigDto } from './mcp-config.dto.js';
import { maskedConfig, parsedConfig, resolveMasks, serialized, type ClearMcpConfig } from './mcp-secrets.js';

const STORED: ClearMcpConfig = {
  sseServers: [
    { url: 'https://a.example', apiKey: 'key-a' },
    { url: 'https://open.example', apiKey: null },
  ],
  stdioServers: [
    {
      name: 'files',
      command: 'npx',
      args: ['-y'],
      env: new Map([
        ['TOKEN', 'token-1'],
        ['__proto__', 'token-2'],
      ]),
    },
    { name: 'bare', command: 'true', args: [], env: new Map() },
  ],
  shttpServers: [{ url: 'https://b.example', apiKey: 'key-b' }],
};

function dto(json: string): McpConfigDto {
  return toDto(McpConfigDto, JSON.parse(json));
}

describe('masks of an MCP configuration', () => {
  it('shows no secret, and keeps every secret in what is encrypted', () => {
    const shown = maskedConfig(STORED);
    expect(JSON.stringify(shown)).not.toMatch(/key-|token-/);
    expect(shown.sse_servers).toEqual([
      { url: 'https://a.example', api_key: MASK },
      { url: 'https://open.example', api_key: null },
    ]);
    expect(Object.entries(shown.stdio_servers[0]?.env ?? {})).toEqual([
      ['TOKEN', MASK],
      ['__proto__', MASK],
    ]);
    expect(parsedConfig(serialized(STORED))).toEqual(STORED);
  });

  it('accepts back what it shows', () => {
    const shown = dto(JSON.stringify(maskedConfig(STORED)));
    expect(resolveMasks(shown, STORED, [])).toEqual({ config: STORED, problems: [] });
  });

  it('accepts one among variables that are one text', () => {
    const server = { name: 'files', command: 'npx', env: `TOKEN=${MASK},MODE=new` };
    const { config, problems } = resolveMasks(dto(JSON.stringify({ stdio_servers: [server] })), STORED, []);

    expect([...(config.stdioServers[0]?.env ?? [])]).toEqual([
      ['TOKEN', 'token-1'],
      ['MODE', 'new'],
    ]);
    expect(problems).toEqual([]);
  });

  it.each([
    ['new secrets', '{"sse_servers":[{"url":"https://a.example","api_key":"new"}]}', 'new'],
    ['a mask', `{"sse_servers":[{"url":"https://a.example","api_key":"${MASK}"}]}`, 'key-a'],
    ['null', '{"sse_servers":[{"url":"https://a.example","api_key":null}]}', null],
    ['nothing', '{"sse_servers":[{"url":"https://a.example"}]}', null],
    ['blanks', '{"sse_servers":[{"url":"https://a.example","api_key":" "}]}', null],
    ['a bare address', '{"sse_servers":["https://a.example"]}', null],
  ])('takes %s for the key', (_what, json, expected) => {
    const { config, problems } = resolveMasks(dto(json), STORED, []);
    expect(problems).toEqual([]);
    expect(config).toEqual({
      sseServers: [{ url: 'https://a.example', apiKey: expected }],
      stdioServers: [],
      shttpServers: [],
    });
  });

  it.each([
    [
      'another url',
      `{"sse_servers":[{"url":"https://c.example","api_key":"${MASK}"}]}`,
      'sse_servers.0.api_key',
    ],
    [
      'the same url in the other list',
      `{"shttp_servers":[{"url":"https://a.example","api_key":"${MASK}"}]}`,
      'shttp_servers.0.api_key',
    ],
    [
      'a server without a key',
      `{"sse_servers":[{"url":"https://open.example","api_key":"${MASK}"}]}`,
      'sse_servers.0.api_key',
    ],
    [
      'another variable',
      `{"stdio_servers":[{"name":"bare","command":"true"},{"name":"files","command":"npx","env":{"OTHER":"${MASK}"}}]}`,
      'stdio_servers.1.env.OTHER',
    ],
    [
      'another server',
      `{"stdio_servers":[{"name":"bare","command":"npx","env":{"TOKEN":"${MASK}"}}]}`,
      'stdio_servers.0.env.TOKEN',
    ],
  ])('refuses the mask of %s', (_what, json, expected) => {
    const { problems } = resolveMasks(dto(json), STORED, ['body', 'mcp_config']);
    expect(problems.map(({ loc, type }) => `${loc.join('.')} ${type}`)).toEqual([
      `body.mcp_config.${expected} value_error`,
    ]);
  });

  it('refuses every mask when nothing is stored', () => {
    expect(resolveMasks(dto(JSON.stringify(maskedConfig(STORED))), null, []).problems).toHaveLength(4);
  });
});
