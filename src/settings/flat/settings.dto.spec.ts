import { describe, expect, it } from '@jest/globals';
import { bodyProblems, parseBody } from '../../../test/support/body-problems.js';
import { SettingsDto } from './settings.dto.js';

const sse = (server: string): string => `{"mcp_config":{"sse_servers":[${server}]}}`;
const shttp = (server: string): string => `{"mcp_config":{"shttp_servers":[${server}]}}`;
const stdio = (server: string): string => `{"mcp_config":{"stdio_servers":[${server}]}}`;

describe('SettingsDto', () => {
  it.each([
    ['{}', {}],
    ['{"remote_runtime_resource_factor":8}', { remote_runtime_resource_factor: 8 }],
    ['{"llm_api_key":""}', { llm_api_key: '' }],
    ['{"llm_api_key":"   "}', { llm_api_key: '' }],
    ['{"llm_api_key":null}', { llm_api_key: null }],
    ['{"llm_base_url":" https://llm.example.com/v1 "}', { llm_base_url: 'https://llm.example.com/v1' }],
    ['{"llm_base_url":""}', { llm_base_url: '' }],
    ['{"condenser_max_size":10}', {}],
    ['{"secrets_store":null}', {}],
    ['{"secrets_store":{}}', { secrets_store: {} }],
    ['{"secrets_store":{"provider_tokens":null,"custom_secrets":null,"x":1}}', { secrets_store: {} }],
    [
      '{"secrets_store":{"provider_tokens":{"github":{"token":"abc"},"gitlab":null}}}',
      {
        secrets_store: {
          provider_tokens: new Map([
            ['github', { token: 'abc' }],
            ['gitlab', null],
          ]),
        },
      },
    ],
    [
      '{"secrets_store":{"custom_secrets":{"A":{"secret":"x","description":"d"},"B":"y","constructor":""}}}',
      {
        secrets_store: {
          custom_secrets: new Map<string, object>([
            ['A', { secret: 'x', description: 'd' }],
            ['B', { secret: 'y' }],
            ['constructor', { secret: '' }],
          ]),
        },
      },
    ],
    ['{"mcp_config":null}', { mcp_config: null }],
    ['{"mcp_config":{}}', { mcp_config: {} }],
    [sse('"http://a.b/sse"'), { mcp_config: { sse_servers: [{ url: 'http://a.b/sse' }] } }],
    [sse('{"url":"http://a","zzz":5}'), { mcp_config: { sse_servers: [{ url: 'http://a' }] } }],
    [sse('{"url":"  http://a  "}'), { mcp_config: { sse_servers: [{ url: 'http://a' }] } }],
    [
      sse('{"url":"wss://a","api_key":null}'),
      { mcp_config: { sse_servers: [{ url: 'wss://a', api_key: null }] } },
    ],
    [shttp('{"url":"http://a"}'), { mcp_config: { shttp_servers: [{ url: 'http://a' }] } }],
    [shttp('{"url":"http://a","timeout":0}'), { mcp_config: { shttp_servers: [{ url: 'http://a' }] } }],
    [shttp('{"url":"http://a","timeout":"x"}'), { mcp_config: { shttp_servers: [{ url: 'http://a' }] } }],
    [
      stdio('{"name":" a ","command":" npx ","args":null,"env":null}'),
      { mcp_config: { stdio_servers: [{ name: 'a', command: 'npx' }] } },
    ],
    [
      stdio('{"name":"a","command":"npx","args":"-y \\"a b\\"","env":"A=1,B=2"}'),
      {
        mcp_config: {
          stdio_servers: [
            {
              name: 'a',
              command: 'npx',
              args: ['-y', 'a b'],
              env: new Map([
                ['A', '1'],
                ['B', '2'],
              ]),
            },
          ],
        },
      },
    ],
    [
      stdio('{"name":"a","command":"npx","args":" ","env":""}'),
      { mcp_config: { stdio_servers: [{ name: 'a', command: 'npx', args: [], env: new Map() }] } },
    ],
    [
      stdio('{"name":"a","command":"npx","args":["-y",""],"env":{"A":"1","__proto__":""}}'),
      {
        mcp_config: {
          stdio_servers: [
            {
              name: 'a',
              command: 'npx',
              args: ['-y', ''],
              env: new Map([
                ['A', '1'],
                ['__proto__', ''],
              ]),
            },
          ],
        },
      },
    ],
    [
      '{"mcp_config":{"sse_servers":["http://a"],"shttp_servers":["http://a"]}}',
      { mcp_config: { sse_servers: [{ url: 'http://a' }], shttp_servers: [{ url: 'http://a' }] } },
    ],
  ])('accepts %s', async (body, expected) => {
    expect(await parseBody(SettingsDto, body)).toEqual(expected);
  });

  it.each([
    ['{"max_iterations":2147483648}', 'max_iterations int_parsing_size'],
    ['{"enable_default_condenser":null}', 'enable_default_condenser bool_type'],
    ['{"llm_base_url":"llm.example.com"}', 'llm_base_url value_error'],
    ['{"llm_base_url":"ws://llm.example.com"}', 'llm_base_url value_error'],
    ['{"llm_base_url":"https://me:secret@llm.example.com"}', 'llm_base_url value_error'],
    ['{"secrets_store":"x"}', 'secrets_store value_error'],
    ['{"secrets_store":[]}', 'secrets_store value_error'],
    ['{"secrets_store":{"provider_tokens":"x"}}', 'secrets_store.provider_tokens dict_type'],
    [
      '{"secrets_store":{"provider_tokens":{"foo":{"token":"abc"}}}}',
      'secrets_store.provider_tokens.foo.[key] enum',
    ],
    [
      '{"secrets_store":{"provider_tokens":{"github":"abc"}}}',
      'secrets_store.provider_tokens.github model_attributes_type',
    ],
    [
      '{"secrets_store":{"provider_tokens":{"github":{"token":5}}}}',
      'secrets_store.provider_tokens.github.token string_type',
    ],
    [
      '{"secrets_store":{"provider_tokens":{"GITHUB":{"token":"abc"}}}}',
      'secrets_store.provider_tokens.GITHUB.[key] enum',
    ],
    [
      '{"secrets_store":{"provider_tokens":{"__proto__x":null}}}',
      'secrets_store.provider_tokens.__proto__x.[key] enum',
    ],
    [
      '{"secrets_store":{"provider_tokens":{"github":{"host":5}}}}',
      'secrets_store.provider_tokens.github.host string_type',
    ],
    [
      '{"secrets_store":{"provider_tokens":{"github":{"user_id":5}}}}',
      'secrets_store.provider_tokens.github.user_id string_type',
    ],
    ['{"secrets_store":{"custom_secrets":"x"}}', 'secrets_store.custom_secrets dict_type'],
    [
      '{"secrets_store":{"custom_secrets":{"A":{"secret":5}}}}',
      'secrets_store.custom_secrets.A.secret string_type',
    ],
    ['{"secrets_store":{"custom_secrets":{"A":{}}}}', 'secrets_store.custom_secrets.A.secret missing'],
    [
      '{"secrets_store":{"custom_secrets":{"A":null}}}',
      'secrets_store.custom_secrets.A model_attributes_type',
    ],
    ['{"secrets_store":{"custom_secrets":{"1A":"x"}}}', 'secrets_store.custom_secrets.1A.[key] value_error'],
    ['{"secrets_store":{"custom_secrets":{"":"x"}}}', 'secrets_store.custom_secrets..[key] value_error'],
    ['{"mcp_config":{"foo":1}}', 'mcp_config.foo extra_forbidden'],
    [sse('{"url":"x"}'), 'mcp_config.sse_servers.0.url value_error'],
    [sse('{"url":""}'), 'mcp_config.sse_servers.0.url value_error'],
    [sse('{"url":"ftp://x"}'), 'mcp_config.sse_servers.0.url value_error'],
    [sse('{"url":"http://"}'), 'mcp_config.sse_servers.0.url value_error'],
    [sse('{"url":"http://a","api_key":5}'), 'mcp_config.sse_servers.0.api_key string_type'],
    [sse('{"url":"http://a"},{"url":" http://a"}'), 'mcp_config.sse_servers.1.url value_error'],
    [sse('"http://a","http://a"'), 'mcp_config.sse_servers.1.url value_error'],
    [stdio('{"name":"a"}'), 'mcp_config.stdio_servers.0.command missing'],
    [stdio('{"name":"a b","command":"x"}'), 'mcp_config.stdio_servers.0.name value_error'],
    [stdio('{"name":" ","command":"x"}'), 'mcp_config.stdio_servers.0.name value_error'],
    [stdio('{"name":"a","command":"x y"}'), 'mcp_config.stdio_servers.0.command value_error'],
    [stdio('{"name":"a","command":""}'), 'mcp_config.stdio_servers.0.command value_error'],
    [stdio('{"name":"a","command":"b","env":{"1A":"2"}}'), 'mcp_config.stdio_servers.0.env.1A value_error'],
    [stdio('{"name":"a","command":"b","env":{"":"2"}}'), 'mcp_config.stdio_servers.0.env. value_error'],
    [
      stdio('{"name":"a","command":"b"},{"name":"a","command":"c"}'),
      'mcp_config.stdio_servers.1.name value_error',
    ],
  ])('refuses %s', async (body, expected) => {
    expect(await bodyProblems(SettingsDto, body)).toEqual([expected]);
  });

  it.each([
    [stdio('{}'), ['mcp_config.stdio_servers.0.name missing', 'mcp_config.stdio_servers.0.command missing']],
    [
      stdio('{"name":"a","command":"npx","args":"\\"x","env":"A"}'),
      ['mcp_config.stdio_servers.0.args value_error', 'mcp_config.stdio_servers.0.env value_error'],
    ],
    [stdio('{"name":"a","command":"npx","env":"1A=2"}'), ['mcp_config.stdio_servers.0.env value_error']],
    [stdio('{"name":"a","command":"npx","env":"=2"}'), ['mcp_config.stdio_servers.0.env value_error']],
    [
      stdio('{"name":"a","command":"npx","args":[1],"env":{"A":1}}'),
      ['mcp_config.stdio_servers.0.args.0 string_type', 'mcp_config.stdio_servers.0.env.A string_type'],
    ],
    [
      stdio('{"name":"a","command":"npx","args":{"a":1},"env":[1]}'),
      ['mcp_config.stdio_servers.0.args list_type', 'mcp_config.stdio_servers.0.env dict_type'],
    ],
    [
      stdio('{"name":"a","command":"npx","args":5,"env":5}'),
      ['mcp_config.stdio_servers.0.args list_type', 'mcp_config.stdio_servers.0.env dict_type'],
    ],
    [
      '{"email":1,"mcp_config":{"x":1,"sse_servers":[1]},"secrets_store":1,"language":1}',
      [
        'language string_type',
        'secrets_store value_error',
        'mcp_config.sse_servers.0 model_attributes_type',
        'mcp_config.x extra_forbidden',
        'email string_type',
      ],
    ],
  ])('names every problem of %s', async (body, expected) => {
    expect(await bodyProblems(SettingsDto, body)).toEqual(expected);
  });
});
