import { describe, expect, it } from '@jest/globals';
import { plainMcpConfig } from './plain-mcp-config.js';

const URL = { url: 'https://mcp.example.com' };

describe('the tool servers of a client', () => {
  it.each<[string, unknown, unknown]>([
    ['in a wrapper', { mcpServers: { one: URL } }, { one: URL }],
    ['without one', { one: URL, two: { command: 'npx' } }, { one: URL, two: { command: 'npx' } }],
    ['none', {}, {}],
    ['null in a wrapper', { mcpServers: null }, undefined],
    ['members that are null', { one: { ...URL, command: null, headers: null, auth: null } }, { one: URL }],
    ['switched off', { one: { ...URL, enabled: false }, two: URL }, { two: URL }],
    ['a token', { one: { ...URL, auth: 't' } }, { one: { ...URL, auth: 't' } }],
    [
      'a bearer',
      { one: { ...URL, auth: { strategy: 'bearer', value: 't' } } },
      { one: { ...URL, auth: 't' } },
    ],
    ['a key', { one: { ...URL, auth: { strategy: 'api_key', value: 't' } } }, { one: { ...URL, auth: 't' } }],
    [
      'a key in a header of its own',
      { one: { ...URL, auth: { strategy: 'api_key', value: 't', header_name: 'X-Key' } } },
      { one: { ...URL, headers: { 'X-Key': 't' } } },
    ],
    [
      'a password',
      { one: { ...URL, headers: { A: 'a' }, auth: { strategy: 'basic', username: 'ada', password: 'p' } } },
      { one: { ...URL, headers: { A: 'a', Authorization: `Basic ${btoa('ada:p')}` } } },
    ],
    [
      'headers',
      { one: { ...URL, auth: { strategy: 'header', headers: { 'X-A': '1' } } } },
      { one: { ...URL, headers: { 'X-A': '1' } } },
    ],
    ['no sign-in', { one: { ...URL, auth: { strategy: 'none' } } }, { one: URL }],
    [
      'an unknown strategy, which the schema refuses',
      { one: { ...URL, auth: { strategy: 'oauth2' } } },
      { one: { ...URL, auth: { strategy: 'oauth2' } } },
    ],
    ['a server that is no object', { one: 1 }, { one: 1 }],
  ])('%s', (_name, config, servers) => {
    expect(plainMcpConfig(config)).toEqual({ mcpServers: servers });
  });

  it.each([null, undefined, 'text', [URL]])('are left as they are: %j', (config) => {
    expect(plainMcpConfig(config)).toEqual(config);
  });
});
