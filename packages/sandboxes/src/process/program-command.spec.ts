import { describe, expect, it } from '@jest/globals';
import { sandboxLaunch } from '../../../../test/support/sandbox-launch.js';
import { SandboxBackendError, type SandboxLaunch, type SandboxProgram } from '../sandbox-backend.js';
import {
  needsAssignedPort,
  programAddress,
  programCommand,
  programMarker,
  sandboxEnvironment,
  unsupportedOverrides,
  workspaceNames,
} from './program-command.js';
import { sandboxPaths } from './sandbox-files.js';

describe('programAddress', () => {
  it.each([
    [null, 'http://127.0.0.1:4000'],
    ['10.0.0.5', 'http://10.0.0.5:4000'],
    ['machine.example', 'http://machine.example:4000'],
    ['fd00::5', 'http://[fd00::5]:4000'],
  ])('%s: %s', (host, address) => {
    expect(programAddress(host, 4000)).toBe(address);
  });
});

function launch(program: SandboxProgram, changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return sandboxLaunch({ id: 'a', sessionKey: 'the-key', program, workingDir: 'workspace', ...changes });
}

const NATIVE: SandboxProgram = { kind: 'native', image: null };
const PATHS = sandboxPaths('/data', 'a', 'workspace');
const REST = {
  paths: PATHS,
  names: workspaceNames(PATHS, true),
  agentServer: { node: '/bin/node', entry: '/app/main.js', relay: '/app/relay.js', args: ['--flag'] },
  toolWrapper: [],
  host: '127.0.0.1',
  port: null,
  rules: null,
};
const RULES = { closed: ['10.0.0.0/8'], opened: [], loopbackPorts: [3000] };

describe('programCommand', () => {
  it('runs our agent server, with its key on standard input', () => {
    const { command, input } = programCommand({ launch: launch(NATIVE), ...REST });
    expect(command.slice(0, 3)).toEqual(['/bin/node', '--flag', '/app/main.js']);
    expect(command.join(' ')).toContain('--socket /data/a/box/run/agent.sock --workspace /workspace/project');
    expect(command.join(' ')).toContain(
      ' --alias /data/a/box/workspace=/workspace/project --file-root /workspace --file-root /data/a/box/workspace',
    );
    expect(command).not.toContain('--webhook-url');
    expect(command).not.toContain('--tool-wrapper');
    expect(command.join(' ')).not.toContain('the-key');
    expect(input).toEqual({ kind: 'text', text: '{"session_api_key":"the-key"}\n' });
  });

  it('lets our agent server wait for its key, and no other program', () => {
    const waiting = { ...launch(NATIVE), sessionKey: null };
    const { command, input } = programCommand({ ...REST, launch: waiting });
    expect(input).toEqual({ kind: 'key-pipe' });
    expect(command).toEqual(programCommand({ ...REST, launch: launch(NATIVE) }).command);
    const other = { ...waiting, program: { kind: 'command' as const, command: 'p', args: [] } };
    expect(() => programCommand({ ...REST, launch: other })).toThrow(
      /cannot be started without a session key/,
    );
  });

  it('has its agent server translate the path of a folder that cannot be mounted', () => {
    const names = workspaceNames(PATHS, false);
    expect(programCommand({ ...REST, launch: launch(NATIVE), names }).command.join(' ')).toMatch(
      / --workspace \/data\/a\/box\/workspace .* --alias \/workspace\/project=\/data\/a\/box\/workspace --alias \/workspace=\/data\/a\/shared --file-root \/data\/a\/shared/,
    );
  });

  it('passes the webhook address and the wrapper of its tools', () => {
    const { command } = programCommand({
      ...REST,
      launch: launch(NATIVE, { callbackUrl: 'http://service/hooks' }),
      toolWrapper: ['wrap', '--'],
    });
    expect(command.slice(-4)).toEqual([
      '--webhook-url',
      'http://service/hooks',
      '--tool-wrapper',
      '["wrap","--"]',
    ]);
  });

  it('fills the port and the address into the arguments of other programs', () => {
    const program: SandboxProgram = {
      kind: 'command',
      command: 'p',
      args: ['--port={port}', '--host={host}', 'x'],
    };
    expect(programCommand({ launch: launch(program), ...REST, port: 4000 })).toEqual({
      command: ['p', '--port=4000', '--host=127.0.0.1', 'x'],
      input: { kind: 'none' },
    });
  });

  it('makes our agent server listen on the port of a machine that others reach', () => {
    const { command } = programCommand({ launch: launch(NATIVE), ...REST, host: '10.0.0.5', port: 4000 });
    expect(command.join(' ')).toContain('main.js --host 10.0.0.5 --port 4000 --workspace');
  });

  it('relays between sockets and the ports of a network of its own', () => {
    const ports = { WORKER_1: 12_000 };
    const { command } = programCommand({ ...REST, launch: launch(NATIVE, { ports }), rules: RULES });
    expect(command.slice(-5)).toEqual([
      '--await-network',
      '--relay',
      'unix:/data/a/box/run/WORKER_1.sock=tcp:127.0.0.1:12000',
      '--relay',
      'tcp:127.0.0.1:3000=tcp:10.0.2.2:3000',
    ]);
    const program: SandboxProgram = { kind: 'command', command: 'p', args: ['{port}'] };
    expect(programCommand({ ...REST, launch: launch(program), rules: RULES }).command).toEqual([
      '/bin/node',
      '--flag',
      '/app/relay.js',
      '--await-network',
      '--relay',
      'tcp:127.0.0.1:3000=tcp:10.0.2.2:3000',
      '--relay',
      'unix:/data/a/box/run/agent.sock=tcp:127.0.0.1:8000',
      '--',
      'p',
      '8000',
    ]);
  });

  it.each([
    ['our agent server', NATIVE, false, null, false],
    ['our agent server, for other machines', NATIVE, false, '10.0.0.5', true],
    ['another program', { kind: 'command', command: 'p', args: [] }, false, null, true],
    [
      'another program with a network of its own',
      { kind: 'command', command: 'p', args: [] },
      true,
      null,
      false,
    ],
  ] as const)('whether %s needs a port of the machine', (_, program, networked, listenAddress, expected) => {
    const given = program.kind === 'command' ? { ...program, args: [] } : program;
    expect(needsAssignedPort(given, { networked, listenAddress })).toBe(expected);
  });

  it('refuses images', () => {
    const program: SandboxProgram = { kind: 'image', image: 'i:1', args: [] };
    expect(() => programCommand({ launch: launch(program), ...REST })).toThrow(SandboxBackendError);
  });
});

it('lists what processes cannot have', () => {
  expect(unsupportedOverrides(launch(NATIVE), () => false)).toEqual([]);
  const overrides = { cpu: 2, memoryMb: 512, runtime: 'runsc', network: 'n' };
  const wanted = launch({ kind: 'native', image: 'i:1' }, overrides);
  const lines = unsupportedOverrides(wanted, () => false);
  expect(lines.map((line) => line.replace(/^.* apply /, ''))).toEqual([
    'the image of the sandbox specification.',
    'the processor limit of the sandbox specification.',
    'the memory limit of the sandbox specification.',
    'the container runtime of the sandbox specification.',
    'the network of the sandbox specification.',
  ]);
  expect(unsupportedOverrides(wanted, (resource) => resource === 'memory')).toHaveLength(4);
});

const LAUNCH = sandboxLaunch({
  id: 'a',
  sessionKey: 'the-key',
  env: { FROM_SPEC: '1', SLIPWAY_SANDBOX: 'spoofed' },
  workingDir: 'workspace',
  callbackUrl: 'http://service/api/v1/webhooks',
});

const INPUT = {
  serviceEnvironment: {
    PATH: '/bin',
    HOME: '/home/service',
    LC_ALL: 'C.UTF-8',
    HTTPS_PROXY: 'http://proxy:3128',
    DATABASE_URL: 'postgres://secret',
    ENCRYPTION_KEYS: 'secret',
    NODE_OPTIONS: '--inspect',
    XDG_RUNTIME_DIR: '/run/user/1',
    TZ: undefined,
  },
  launch: LAUNCH,
  paths: sandboxPaths('/data', 'a', 'workspace'),
  workspace: '/workspace/project',
  tmp: '/tmp',
  marker: programMarker('instance', 'a', 'run'),
  ports: {},
  host: '127.0.0.1',
};

const COMMON = {
  PATH: '/bin',
  LC_ALL: 'C.UTF-8',
  HTTPS_PROXY: 'http://proxy:3128',
  https_proxy: 'http://proxy:3128',
  NO_PROXY: 'localhost,127.0.0.1,::1,.svc,.cluster.local,service',
  no_proxy: 'localhost,127.0.0.1,::1,.svc,.cluster.local,service',
  NODE_USE_ENV_PROXY: '1',
  HOME: '/data/a/box/home',
  TMPDIR: '/tmp',
  FROM_SPEC: '1',
  SLIPWAY_SANDBOX: 'instance/a/run',
};

it('inherits the allow-list, and gives our own server no key', () => {
  expect(sandboxEnvironment({ ...INPUT, port: null })).toEqual(COMMON);
});

const OTHER: SandboxLaunch = { ...LAUNCH, program: { kind: 'command', command: 'p', args: [] } };

it('gives other programs the variables that they read', () => {
  expect(sandboxEnvironment({ ...INPUT, launch: OTHER, port: 4000 })).toEqual({
    ...COMMON,
    PORT: '4000',
    OH_SESSION_API_KEYS_0: 'the-key',
    OH_CONVERSATIONS_PATH: '/data/a/box/conversations',
    OH_BASH_EVENTS_DIR: '/data/a/box/bash_events',
    OH_WORKSPACE_PATH: '/workspace/project',
    OH_WEBHOOKS_0_BASE_URL: 'http://service/api/v1/webhooks',
  });
});

it('has other programs trust the authority of their sandbox, unless the specification says what they trust', () => {
  const egress = { port: 1, credential: 'c', authority: 'PEM', isOnlyWay: false };
  const variables = (launch: SandboxLaunch): unknown => sandboxEnvironment({ ...INPUT, launch, port: 4000 });
  const env = { SSL_CERT_FILE: '/own.pem' };
  expect(variables({ ...OTHER, env, egress })).toMatchObject({
    SSL_CERT_FILE: '/own.pem',
    NODE_EXTRA_CA_CERTS: '/data/a/authorities.pem',
  });
  expect(variables({ ...OTHER, egress: { ...egress, authority: null } })).not.toHaveProperty('SSL_CERT_FILE');
  expect(variables({ ...LAUNCH, egress })).not.toHaveProperty('SSL_CERT_FILE');
});

it('sets no webhook address where there is none', () => {
  const launch = { ...OTHER, callbackUrl: null };
  expect(sandboxEnvironment({ ...INPUT, launch, port: 4000 })).not.toHaveProperty('OH_WEBHOOKS_0_BASE_URL');
});

it('names the ports that tools may use', () => {
  const env = sandboxEnvironment({ ...INPUT, port: null, ports: { WORKER_1: 20_001, FROM_SPEC_2: 20_002 } });
  expect(env).toEqual({
    ...COMMON,
    WORKER_1: '20001',
    FROM_SPEC_2: '20002',
    LISTEN_HOST: '127.0.0.1',
    SLIPWAY_TOOL_VARIABLES: 'WORKER_1,FROM_SPEC_2,LISTEN_HOST',
  });
});
