import { describe, expect, it } from '@jest/globals';
import { MASK } from '@slipway/common/secret-mask.js';
import { toDto } from '@slipway/api/validation/field.js';
import { McpConfigDto } from './mcp-config.dto.js';
import { commandServer, remoteServer } from '../../../test/support/sample-tool-servers.js';
import { maskedServers, resolveMasks } from './listed-servers.js';
import type { ToolServer } from './tool-servers.js';

const STORED: ToolServer[] = [
  commandServer('files', {
    args: ['-y'],
    env: new Map([
      ['TOKEN', 'token-1'],
      ['__proto__', 'token-2'],
    ]),
  }),
  commandServer('bare', { command: 'true' }),
  remoteServer('https://a.example', { transport: 'sse', apiKey: 'key-a' }),
  remoteServer('https://open.example', { transport: 'sse' }),
  remoteServer('https://b.example', { name: 'b', apiKey: 'key-b', details: { timeout: 3 } }),
];

function dto(json: string): McpConfigDto {
  return toDto(McpConfigDto, JSON.parse(json));
}

describe('masks of an MCP configuration', () => {
  it('shows no secret', () => {
    const shown = maskedServers(STORED);
    expect(JSON.stringify(shown)).not.toMatch(/key-|token-/);
    expect(shown.sse_servers).toEqual([
      { url: 'https://a.example', api_key: MASK },
      { url: 'https://open.example', api_key: null },
    ]);
    expect(Object.entries(shown.stdio_servers[0]?.env ?? {})).toEqual([
      ['TOKEN', MASK],
      ['__proto__', MASK],
    ]);
  });

  it('accepts back what it shows', () => {
    const shown = dto(JSON.stringify(maskedServers(STORED)));
    expect(resolveMasks(shown, STORED, [])).toEqual({ servers: STORED, problems: [] });
  });

  it('accepts one among variables that are one text', () => {
    const server = { name: 'files', command: 'npx', env: `TOKEN=${MASK},MODE=new` };
    const resolved = resolveMasks(dto(JSON.stringify({ stdio_servers: [server] })), STORED, []);

    const env = new Map([
      ['TOKEN', 'token-1'],
      ['MODE', 'new'],
    ]);
    expect(resolved).toEqual({ servers: [commandServer('files', { env })], problems: [] });
  });

  it.each([
    ['new secrets', '{"sse_servers":[{"url":"https://a.example","api_key":"new"}]}', 'new'],
    ['a mask', `{"sse_servers":[{"url":"https://a.example","api_key":"${MASK}"}]}`, 'key-a'],
    ['null', '{"sse_servers":[{"url":"https://a.example","api_key":null}]}', null],
    ['nothing', '{"sse_servers":[{"url":"https://a.example"}]}', null],
    ['blanks', '{"sse_servers":[{"url":"https://a.example","api_key":" "}]}', null],
    ['a bare address', '{"sse_servers":["https://a.example"]}', null],
  ])('takes %s for the key', (_what, json, expected) => {
    expect(resolveMasks(dto(json), STORED, [])).toEqual({
      servers: [remoteServer('https://a.example', { transport: 'sse', apiKey: expected })],
      problems: [],
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
    expect(resolveMasks(dto(JSON.stringify(maskedServers(STORED))), null, []).problems).toHaveLength(4);
  });
});
