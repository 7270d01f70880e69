import { describe, expect, it } from '@jest/globals';
import type { McpServerEntry } from '@slipway/agent-protocol/conversation-api.js';
import { concealedServer, searchCredential, toolCredentials } from './tool-credentials.js';

const found = (server: McpServerEntry): unknown[] =>
  toolCredentials({ s: server }).map(({ source, value, hosts, headers, query }) => [
    source.member,
    value,
    hosts,
    query ?? headers,
  ]);

describe('keys of a tool server', () => {
  const hosts = [{ host: 'a.example', paths: ['/mcp', '/mcp/*'] }];

  it.each<[string, McpServerEntry, unknown[]]>([
    ['none', { url: 'https://a.example/mcp', transport: 'http' }, []],
    ['none of a command', { command: 'x', env: { KEY: 'of-a-command' } }, []],
    ['none where the proxy is not on the way', { url: 'http://127.0.0.1:1/?k=v', headers: { X: 'y' } }, []],
    [
      'what follows the scheme',
      { url: 'https://a.example/mcp', transport: 'http', headers: { Authorization: 'Bearer abc' } },
      [['authorization', 'abc', hosts, ['authorization']]],
    ],
    [
      'headers as a whole, without those of HTTP',
      {
        url: 'https://a.example/mcp',
        transport: 'http',
        headers: { 'X-Key': 'a b c', Accept: 'x/y', 'Content-Type': 'z', 'User-Agent': 'u' },
      },
      [['x-key', 'a b c', hosts, ['x-key']]],
    ],
    [
      'members of the query',
      { url: 'https://a.example/mcp?a=%2B1&b=2', transport: 'http' },
      [
        ['?a', '+1', hosts, ['a']],
        ['?b', '2', hosts, ['b']],
      ],
    ],
    [
      'at all paths of a server that says where messages go',
      { url: 'http://[2001:db8::1]:8080/sse?a=1', transport: 'sse' },
      [['?a', '1', [{ host: '2001:db8::1', port: 8080, http: true, paths: ['/*'] }], ['a']]],
    ],
  ])('are %s', (_what, server, expected) => {
    expect(found(server)).toEqual(expected);
  });

  it('are replaced where they stand, and there alone', async () => {
    const server: McpServerEntry = {
      url: 'https://a.example/mcp/key1?k=key1&other=key1',
      transport: 'http',
      headers: { AUTHORIZATION: 'Bearer key1', 'X-Other': 'key1' },
    };
    const shown = await concealedServer('s', server, async ({ source: { member } }) =>
      ['authorization', '?k'].includes(member) ? `for ${member}` : null,
    );
    expect(shown).toEqual({
      url: 'https://a.example/mcp/key1?k=for+%3Fk&other=key1',
      transport: 'http',
      headers: { AUTHORIZATION: 'Bearer for authorization', 'X-Other': 'key1' },
    });
  });

  it('are told apart where a member of the query is there more than once', async () => {
    const server: McpServerEntry = { url: 'https://a.example/mcp?k=one&other=1&k=two', transport: 'http' };
    expect(found(server).map((each) => (each as unknown[]).slice(0, 2))).toEqual([
      ['?k', 'one'],
      ['?other', '1'],
      ['?k#1', 'two'],
    ]);
    const shown = await concealedServer('s', server, async ({ source: { member } }) =>
      member === '?k' ? 'PLACEHOLDER' : null,
    );
    expect(shown.url).toBe('https://a.example/mcp?k=PLACEHOLDER&other=1&k=two');
  });

  it('are none of the search at a loopback address, or without a key', () => {
    expect(searchCredential('http://localhost:1', 'key')).toEqual([]);
    expect(searchCredential('https://api.tavily.com', null)).toEqual([]);
  });
});
