import { describe, expect, it } from '@jest/globals';
import type { SandboxLaunch } from '../sandbox-backend.js';
import {
  containerFacts,
  containerOptions,
  exposeImageVariables,
  type InspectedContainer,
  sandboxLayout,
  type SandboxReach,
  sandboxReach,
} from './container.js';

const LOOPBACK: SandboxReach = { by: 'port', hostIp: '127.0.0.1', urlHost: '127.0.0.1' };
const PUBLISHED = { '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: '32769' }] };

/** The part of the engine's answer that is read. */
function container(
  state: Partial<InspectedContainer['State']>,
  ports: InspectedContainer['NetworkSettings']['Ports'] = {},
): InspectedContainer {
  return {
    Config: {
      Labels: {
        'slipway.sandbox-id': 'AbC',
        'slipway.created-at': '1234',
        'slipway.ports': '{"WORKER_1":8011}',
      },
    },
    State: { Status: 'exited', ExitCode: 0, OOMKilled: false, ...state },
    NetworkSettings: { Ports: ports },
  };
}

describe('containerFacts', () => {
  it.each([
    ['running', 'running'],
    ['paused', 'running'],
    ['restarting', 'running'],
    ['created', 'stopped'],
    ['exited', 'stopped'],
    ['removing', 'stopped'],
    ['dead', 'stopped'],
  ])('takes %s for %s', (Status, expected) => {
    expect(containerFacts(container({ Status }), LOOPBACK)).toMatchObject({
      id: 'AbC',
      state: expected,
      createdAt: 1234,
    });
  });

  it.each([
    [LOOPBACK, PUBLISHED, 'http://127.0.0.1:32769'],
    [LOOPBACK, {}, null],
    [{ by: 'port', hostIp: 'fd00::5', urlHost: '[fd00::5]' }, PUBLISHED, null],
    [
      { by: 'port', hostIp: '0.0.0.0', urlHost: 'host.example' },
      {
        '8000/tcp': [
          { HostIp: '::', HostPort: '1' },
          { HostIp: '0.0.0.0', HostPort: '2' },
        ],
      },
      'http://host.example:2',
    ],
    [{ by: 'name' }, {}, 'http://slipway-abc:8000'],
  ] satisfies [SandboxReach, InspectedContainer['NetworkSettings']['Ports'], string | null][])(
    'finds where %j is reached',
    (reach, ports, address) => {
      expect(containerFacts(container({ Status: 'running' }, ports), reach).address).toBe(address);
    },
  );

  it.each<[SandboxReach, Record<string, string>]>([
    [LOOPBACK, { WORKER_1: 'http://127.0.0.1:32770' }],
    [{ by: 'name' }, { WORKER_1: 'http://slipway-abc:8011' }],
    [{ by: 'port', hostIp: '10.0.0.1', urlHost: '10.0.0.1' }, {}],
  ])('finds where the ports of what agents start are reached: %j', (reach, ports) => {
    const published = { ...PUBLISHED, '8011/tcp': [{ HostIp: '127.0.0.1', HostPort: '32770' }] };
    expect(containerFacts(container({ Status: 'running' }, published), reach).ports).toEqual(ports);
    expect(containerFacts(container({ Status: 'exited' }, published), reach).ports).toEqual({});
  });

  it.each([
    [{ Status: 'created' }, null],
    [
      { Status: 'created', ExitCode: 127 },
      { code: 127, signal: null, outOfMemory: false },
    ],
    [{ ExitCode: 7 }, { code: 7, signal: null, outOfMemory: false }],
    [
      { ExitCode: 137, OOMKilled: true },
      { code: 137, signal: null, outOfMemory: true },
    ],
    // A tool was, some time ago.
    [
      { ExitCode: 0, OOMKilled: true },
      { code: 0, signal: null, outOfMemory: false },
    ],
    [{ Status: 'running' }, null],
  ])('tells of %j how it ended', (state, exit) => {
    expect(containerFacts(container(state), LOOPBACK)).toMatchObject({ exit });
  });
});

const SESSION_KEY = 'the-session-key';
const ENGINE = { version: '28.0.0', processors: 4, knowsHostGateway: true, rootDir: null };

function launch(changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return {
    id: 'AbCdEfGhIjKlMnOpQrStUv',
    sessionKey: SESSION_KEY,
    program: { kind: 'native', image: null },
    env: { LANG: 'C.UTF-8' },
    workingDir: 'workspace/project',
    cpu: null,
    memoryMb: null,
    runtime: null,
    network: null,
    ports: {},
    callbackUrl: 'http://host.docker.internal:3000/api/v1/webhooks',
    ...changes,
  };
}

function made(
  changes: Partial<SandboxLaunch> = {},
  network: string | null = null,
  engine = ENGINE,
  environment: Record<string, string> = {},
) {
  const given = launch(changes);
  const options = { instanceId: 'test', network, pidsLimit: 512, cpu: 2, memoryMb: 1024, environment };
  const reach = sandboxReach({ network, listenAddress: null });
  return containerOptions(given, sandboxLayout(given, 'agent-image'), options, reach, engine, 1234);
}

describe('containerOptions', () => {
  it("hands the operator's proxy on, and of the service's other variables none", () => {
    const environment = { HTTPS_PROXY: 'http://proxy:3128', PATH: '/opt/bin' };
    const { Env = [] } = made({ env: { NO_PROXY: 'of-the-spec' } }, null, ENGINE, environment);
    expect(Env).toEqual(expect.arrayContaining(['HTTPS_PROXY=http://proxy:3128', 'NODE_USE_ENV_PROXY=1']));
    expect(Env).toContain('NO_PROXY=of-the-spec');
    expect(Env).not.toContain('PATH=/opt/bin');
  });

  it('takes everything away that a sandbox does not need', () => {
    expect(made()).toMatchObject({
      name: 'slipway-AbCdEfGhIjKlMnOpQrStUv',
      Image: 'agent-image',
      User: '10001:10001',
      Labels: {
        'slipway.instance': 'test',
        'slipway.sandbox-id': 'AbCdEfGhIjKlMnOpQrStUv',
        'slipway.created-at': '1234',
        // Or those of the image would count.
        'slipway.ports': '{}',
      },
      HostConfig: {
        Init: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        ReadonlyRootfs: true,
        PidsLimit: 512,
        Memory: 1024 * 1024 * 1024,
        MemorySwap: 1024 * 1024 * 1024,
        NanoCpus: 2e9,
        RestartPolicy: { Name: 'no' },
        PortBindings: { '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] },
        ExtraHosts: ['host.docker.internal:host-gateway'],
        Mounts: [{ Type: 'volume', Source: 'slipway-AbCdEfGhIjKlMnOpQrStUv', Target: '/sandbox' }],
      },
    });
  });

  it('has the session key of our own server nowhere', () => {
    const options = made();
    expect(JSON.stringify(options)).not.toContain(SESSION_KEY);
    expect(options).toMatchObject({ OpenStdin: true, StdinOnce: true });
    expect(options.Cmd?.slice(0, 2)).toEqual(['--workspace', '/sandbox/workspace/project']);
    expect(options.Env).toContain('HOME=/sandbox/home');
    expect(options.Env).toContain('OH_WEBHOOKS_0_BASE_URL=http://host.docker.internal:3000/api/v1/webhooks');
  });

  it('tells a stock agent server in its environment', () => {
    const program = { kind: 'image', image: 'stock:1', args: ['--port', '{port}'] } as const;
    const options = made({
      program: { ...program, args: [...program.args] },
      workingDir: '/workspace/project',
      callbackUrl: null,
    });
    expect(options).toMatchObject({
      Image: 'stock:1',
      Cmd: ['--port', '8000'],
      OpenStdin: false,
      WorkingDir: '/workspace',
    });
    expect(options.Env).toEqual([
      'HOME=/workspace',
      'OH_ENABLE_VNC=0',
      'OH_CONVERSATIONS_PATH=/workspace/conversations',
      'OH_BASH_EVENTS_DIR=/workspace/bash_events',
      'LANG=C.UTF-8',
      'PORT=8000',
      `OH_SESSION_API_KEYS_0=${SESSION_KEY}`,
    ]);
  });

  it('publishes the ports of what agents start, and tells tools which they are', () => {
    const options = made({ ports: { WORKER_1: 8011 } });
    expect(options.HostConfig?.PortBindings).toEqual({
      '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }],
      '8011/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }],
    });
    expect(options.ExposedPorts).toEqual({ '8000/tcp': {}, '8011/tcp': {} });
    expect(options.Labels).toMatchObject({ 'slipway.ports': '{"WORKER_1":8011}' });
    expect(options.Env).toEqual(
      expect.arrayContaining([
        'WORKER_1=8011',
        'LISTEN_HOST=0.0.0.0',
        'SLIPWAY_TOOL_VARIABLES=WORKER_1,LISTEN_HOST',
      ]),
    );
  });

  it('applies what the launch says of resources', () => {
    expect(made({ cpu: 1.5, memoryMb: 256, runtime: 'runsc' }).HostConfig).toMatchObject({
      NanoCpus: 1.5e9,
      Memory: 268_435_456,
      Runtime: 'runsc',
    });
  });

  it('asks for no more processors than there are', () => {
    expect(made({ cpu: 16 }).HostConfig?.NanoCpus).toBe(4e9);
  });

  it('publishes no port in a network that the service is in', () => {
    const { HostConfig, NetworkingConfig } = made({}, 'sandboxes');
    expect(HostConfig).toMatchObject({ NetworkMode: 'sandboxes' });
    expect(HostConfig).not.toHaveProperty('PortBindings');
    expect(HostConfig).not.toHaveProperty('ExtraHosts');
    expect(NetworkingConfig).toEqual({
      EndpointsConfig: { sandboxes: { Aliases: ['slipway-abcdefghijklmnopqrstuv'] } },
    });
  });

  it("puts the specification's network first", () => {
    expect(made({ network: 'mine' }, 'sandboxes')).toMatchObject({
      HostConfig: { NetworkMode: 'mine' },
      NetworkingConfig: { EndpointsConfig: { mine: {} } },
    });
    const published = made({ network: 'mine' });
    expect(published.HostConfig).toMatchObject({ NetworkMode: 'mine', PortBindings: { '8000/tcp': [{}] } });
    expect(published).not.toHaveProperty('NetworkingConfig');
  });

  it('names the host only to engines that know how', () => {
    expect(made({}, null, { ...ENGINE, knowsHostGateway: false }).HostConfig).not.toHaveProperty(
      'ExtraHosts',
    );
  });

  it.each(['host', 'none', 'container:other'])('refuses the network %s', (network) => {
    expect(() => made({ network })).toThrow(`"${network}"`);
  });

  it.each([
    [{ program: { kind: 'command', command: 'python', args: [] } }, /process sandboxes only/],
    [{ workingDir: '../elsewhere' }, /must be relative or lie in \/sandbox/],
    [{ workingDir: '/srv' }, /must be relative or lie in \/sandbox/],
    [
      { program: { kind: 'image', image: 'x', args: [] }, workingDir: '/srv' },
      /must be relative or lie in \/workspace/,
    ],
  ] satisfies [Partial<SandboxLaunch>, RegExp][])('refuses %j', (changes, message) => {
    expect(() => made(changes)).toThrow(message);
  });
});

it.each([
  [[], ['JAVA_HOME=/opt/java', 'PATH=/bin'], ['SLIPWAY_TOOL_VARIABLES=JAVA_HOME,PATH']],
  [
    ['A=1', 'SLIPWAY_TOOL_VARIABLES=WORKER_1'],
    ['RUSTUP_HOME=/x=y'],
    ['A=1', 'SLIPWAY_TOOL_VARIABLES=WORKER_1,RUSTUP_HOME'],
  ],
  [
    [],
    [
      'NODE_OPTIONS=--inspect',
      'LD_PRELOAD=x',
      'OH_SESSION_API_KEYS_0=x',
      'NPM_TOKEN=x',
      'SLIPWAY_X=1',
      'B=1',
    ],
    ['SLIPWAY_TOOL_VARIABLES=B'],
  ],
])('%j and of the image %j', (Env, variables, expected) => {
  expect(exposeImageVariables({ Image: 'i', Env }, variables)).toEqual({ Image: 'i', Env: expected });
});

it.each([
  [null, null, { by: 'port', hostIp: '127.0.0.1', urlHost: '127.0.0.1' }],
  [null, '10.0.0.5', { by: 'port', hostIp: '10.0.0.5', urlHost: '10.0.0.5' }],
  [null, 'fd00::5', { by: 'port', hostIp: 'fd00::5', urlHost: '[fd00::5]' }],
  [null, 'host.example', { by: 'port', hostIp: '0.0.0.0', urlHost: 'host.example' }],
  ['sandboxes', '10.0.0.5', { by: 'name' }],
])('network %s, address %s', (network, listenAddress, expected) => {
  expect(sandboxReach({ network, listenAddress })).toEqual(expected);
});
