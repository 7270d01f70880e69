import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { numberedVariables, parseOptions, readSessionKey, takeSessionKeys } from './command-line.js';

describe('parseOptions', () => {
  it('has a default for everything', () => {
    expect(parseOptions([], {}, '/srv')).toEqual({
      host: '127.0.0.1',
      port: 8000,
      socket: null,
      relays: [],
      workspace: '/srv/workspace',
      conversationsPath: '/srv/workspace/conversations',
      bashEventsPath: '/srv/workspace/bash_events',
      fileRoots: [],
      aliases: [],
      webhook: null,
      corsOrigins: [],
      toolWrapper: [],
      maxConcurrentRuns: 10,
      secretsOnStdin: false,
      workspaceName: null,
    });
  });

  it('reads the environment, with precedence for the command line', () => {
    const env = {
      OH_WORKSPACE_PATH: '/w',
      OH_CONVERSATIONS_PATH: '/c',
      OH_BASH_EVENTS_DIR: '/b',
      OH_WEBHOOKS_0_BASE_URL: 'http://service/hooks/',
      OH_WEBHOOKS_0_FLUSH_DELAY: '0.5',
      OH_ALLOW_CORS_ORIGINS_0: 'https://a.example',
      OH_MAX_CONCURRENT_RUNS: '3',
      SLIPWAY_WORKSPACE_NAME: '/volume/project:/workspace/project',
    };
    const args = ['--port', '0', '--workspace', 'mine', '--file-root', '/srv/shared'].concat([
      '--alias',
      '/workspace/project=/srv/mine',
      '--secrets-stdin',
    ]);
    expect(parseOptions(args, env, '/srv')).toMatchObject({
      port: 0,
      workspace: '/srv/mine',
      conversationsPath: '/c',
      bashEventsPath: '/b',
      fileRoots: ['/srv/shared'],
      aliases: [{ name: '/workspace/project', folder: '/srv/mine' }],
      workspaceName: { folder: '/volume/project', name: '/workspace/project' },
      webhook: { baseUrl: 'http://service/hooks', flushDelayMs: 500, retries: 3 },
      corsOrigins: ['https://a.example'],
      maxConcurrentRuns: 3,
      secretsOnStdin: true,
    });
  });

  it.each([
    [['--port', 'x'], {}, /--port/],
    [['--port', '70000'], {}, /--port/],
    [['--tool-wrapper', '{}'], {}, /JSON array/],
    [['--unknown'], {}, /Unknown option/],
    [[], { OH_WEBHOOKS_0_BASE_URL: 'ftp://x' }, /must begin with http/],
    [[], { OH_WEBHOOKS_0_BASE_URL: 'x' }, /Invalid URL/],
  ])('refuses %j %j', (args, env, message) => {
    expect(() => parseOptions(args, env, '/')).toThrow(message);
  });
});

it('reads numberedVariables variables in their order', () => {
  expect(numberedVariables({ A_10: 'c', A_2: 'b', A_0: 'a', A_3: '', A_X: 'x', B_0: 'y' }, 'A_')).toEqual([
    'a',
    'b',
    'c',
  ]);
});

describe('readSessionKey', () => {
  it('reads one line, whatever follows', async () => {
    expect(await readSessionKey(Readable.from(['{"session_api', '_key":"k"}\n', 'rest']))).toBe('k');
  });

  it.each(['', '\n', 'k\n', '{"session_api_key":""}\n'])('rejects %j without repeating it', async (input) => {
    await expect(readSessionKey(Readable.from([input]))).rejects.toThrow(/must begin with a line of JSON/);
  });
});

it('removes keys from the environment', () => {
  const env = { OH_SESSION_API_KEYS_1: 'b', OH_SESSION_API_KEYS_0: 'a', SESSION_API_KEY: 'c', OTHER: 'x' };
  expect(takeSessionKeys(env)).toEqual(['a', 'b', 'c']);
  expect(env).toEqual({ OTHER: 'x' });
});
