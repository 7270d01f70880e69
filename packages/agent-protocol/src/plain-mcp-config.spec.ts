import { describe, expect, it } from '@jest/globals';
import { plainMcpConfig } from './plain-mcp-config.js';

const URL = { url: 'https://mcp.example.com' };
/** A server that wants to be signed in to so. */
const by = (strategy: string, members: object = {}, others: object = {}) => ({
  one: { ...URL, ...others, auth: { strategy, ...members } },
});

describe('the tool servers of a client', () => {
  it.each<[string, unknown, unknown]>([
    ['in a wrapper', { mcpServers: { one: URL } }, { one: URL }],
    ['without one', { one: URL, two: { command: 'npx' } }, { one: URL, two: { command: 'npx' } }],
    ['none', {}, {}],
    ['null in a wrapper', { mcpServers: null }, undefined],
    ['members that are null', { one: { ...URL, command: null, headers: null, auth: null } }, { one: URL }],
    ['switched off', { one: { ...URL, enabled: false }, two: URL }, { two: URL }],
    ['a token', { one: { ...URL, auth: 't' } }, { one: { ...URL, auth: 't' } }],
    ['a bearer', by('bearer', { value: 't' }), { one: { ...URL, auth: 't' } }],
    ['a key', by('api_key', { value: 't' }), { one: { ...URL, auth: 't' } }],
    [
      'a key in a header of its own',
      by('api_key', { value: 't', header_name: 'X-Key' }),
      { one: { ...URL, headers: { 'X-Key': 't' } } },
    ],
    [
      'a password',
      by('basic', { username: 'ada', password: 'p' }, { headers: { A: 'a' } }),
      { one: { ...URL, headers: { A: 'a', Authorization: `Basic ${btoa('ada:p')}` } } },
    ],
    ['headers', by('header', { headers: { 'X-A': '1' } }), { one: { ...URL, headers: { 'X-A': '1' } } }],
    ['no sign-in', by('none'), { one: URL }],
    ['an unknown strategy, which the schema refuses', by('oauth2'), by('oauth2')],
    ['a server that is no object', { one: 1 }, { one: 1 }],
  ])('%s', (_name, config, servers) => {
    expect(plainMcpConfig(config)).toEqual({ mcpServers: servers });
  });

  it.each([null, undefined, 'text', [URL]])('are left as they are: %j', (config) => {
    expect(plainMcpConfig(config)).toEqual(config);
  });
});
