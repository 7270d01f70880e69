import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { numberedVariables, parseOptions, readSessionKey, takeSessionKeys } from './command-line.js';

describe('parseOptions', () => {
  it('has a default for everything', () => {
    expect(parseOptions([], {}, '/srv')).toEqual({
      host: '127.0.0.1',
      port: 8000,
      socket: null,
      relays: [],
      awaitNetwork: false,
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
      webhook: { baseUrl: 'http://service/hooks', flushDelayMs: 250, retries: 3 },
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

it('reads numbered variables in order', () => {
  expect(numberedVariables({ A_10: 'c', A_2: 'b', A_0: 'a', A_3: '', A_X: 'x', B_0: 'y' }, 'A_')).toEqual([
    'a',
    'b',
    'c',
  ]);
});

describe('readSessionKey', () => {
  it('reads one line, whatever follows, and closes the input', async () => {
    const input = Readable.from(['{"session_api', '_key":"k"}\nrest', 'more']);
    expect(await readSessionKey(input)).toBe('k');
    expect(input.destroyed).toBe(true);
  });

  it('reads a line that the end of the input ends', async () => {
    expect(await readSessionKey(Readable.from(['{"session_api_key":"k"}']))).toBe('k');
  });

  it('waits for a line that comes later', async () => {
    const input = new PassThrough();
    const key = readSessionKey(input);
    input.write('{"session_api_key":');
    input.write(Buffer.from('"ключ"}\n').subarray(0, 4));
    input.write(Buffer.from('"ключ"}\n').subarray(4));
    expect(await key).toBe('ключ');
  });

  it.each([
    ['', /and ended without one/],
    ['\n', /and began with something else/],
    ['k\n', /and began with something else/],
    ['{"session_api_key":""}\n', /and began with something else/],
    ['{"session_api_key":["k"]}\n', /and began with something else/],
    [`{"session_api_key":"${'k'.repeat(16 * 1024)}"}\n`, /of at most 16384 bytes/],
    ['k'.repeat(1024 * 1024), /of at most 16384 bytes/],
  ])('rejects other input without repeating it', async (input, message) => {
    const error = await readSessionKey(Readable.from([input])).catch(String);
    expect(error).toMatch(/must begin with a line of JSON/);
    expect(error).toMatch(message);
    expect(error).not.toMatch(/kk/);
  });

  it('reads no more of an endless line than its bound', async () => {
    let chunks = 0;
    const endless = Readable.from(
      (function* () {
        for (;;) {
          chunks += 1;
          yield Buffer.alloc(1024, 'k');
        }
      })(),
    );
    await expect(readSessionKey(endless)).rejects.toThrow(/of at most/);
    expect(chunks).toBeLessThan(64);
  });
});

it('removes keys from the environment', () => {
  const env = { OH_SESSION_API_KEYS_1: 'b', OH_SESSION_API_KEYS_0: 'a', SESSION_API_KEY: 'c', OTHER: 'x' };
  expect(takeSessionKeys(env)).toEqual(['a', 'b', 'c']);
  expect(env).toEqual({ OTHER: 'x' });
});
