import { expect, it } from '@jest/globals';
import type { SandboxLaunch } from '../sandbox-backend.js';
import { programMarker, sandboxEnvironment } from './sandbox-environment.js';
import { sandboxPaths } from './sandbox-paths.js';

const LAUNCH: SandboxLaunch = {
  id: 'a',
  sessionKey: 'the-key',
  program: { kind: 'native', image: null },
  env: { FROM_SPEC: '1', SLIPWAY_SANDBOX: 'spoofed' },
  workingDir: 'workspace',
  cpu: null,
  memoryMb: null,
  runtime: null,
  network: null,
  ports: {},
  callbackUrl: 'http://service/api/v1/webhooks',
};

const INPUT = {
  own: {
    PATH: '/bin',
    HOME: '/home/service',
    LC_ALL: 'C.UTF-8',
    https_proxy: 'http://proxy:3128',
    DATABASE_URL: 'postgres://secret',
    ENCRYPTION_KEYS: 'secret',
    NODE_OPTIONS: '--inspect',
    XDG_RUNTIME_DIR: '/run/user/1',
    TZ: undefined,
  },
  launch: LAUNCH,
  paths: sandboxPaths('/data', 'a', 'workspace'),
  tmp: '/tmp',
  marker: programMarker('instance', 'a', 'run'),
  ports: {},
  host: '127.0.0.1',
};

const COMMON = {
  PATH: '/bin',
  LC_ALL: 'C.UTF-8',
  https_proxy: 'http://proxy:3128',
  NO_PROXY: 'localhost,127.0.0.1,::1,service',
  no_proxy: 'localhost,127.0.0.1,::1,service',
  NODE_USE_ENV_PROXY: '1',
  HOME: '/data/a/box/home',
  TMPDIR: '/tmp',
  FROM_SPEC: '1',
  SLIPWAY_SANDBOX: 'instance/a/run',
};

it('hands on what is on the list, and no key to our own server', () => {
  expect(sandboxEnvironment({ ...INPUT, port: null })).toEqual(COMMON);
});

it('tells other programs what they read from variables', () => {
  expect(sandboxEnvironment({ ...INPUT, port: 4000 })).toEqual({
    ...COMMON,
    PORT: '4000',
    OH_SESSION_API_KEYS_0: 'the-key',
    OH_CONVERSATIONS_PATH: '/data/a/box/conversations',
    OH_BASH_EVENTS_DIR: '/data/a/box/bash_events',
    OH_WORKSPACE_PATH: '/data/a/box/workspace',
    OH_WEBHOOKS_0_BASE_URL: 'http://service/api/v1/webhooks',
  });
});

it('names no webhook where there is none', () => {
  const launch = { ...LAUNCH, callbackUrl: null };
  expect(sandboxEnvironment({ ...INPUT, launch, port: 4000 })).not.toHaveProperty('OH_WEBHOOKS_0_BASE_URL');
});

it('names the ports that tools may use, and none where there are none', () => {
  const env = sandboxEnvironment({ ...INPUT, port: null, ports: { WORKER_1: 20_001, FROM_SPEC_2: 20_002 } });
  expect(env).toEqual({
    ...COMMON,
    WORKER_1: '20001',
    FROM_SPEC_2: '20002',
    LISTEN_HOST: '127.0.0.1',
    SLIPWAY_TOOL_VARIABLES: 'WORKER_1,FROM_SPEC_2,LISTEN_HOST',
  });
});
