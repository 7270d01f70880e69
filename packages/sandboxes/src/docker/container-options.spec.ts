import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { sandboxLaunch } from '../../../../test/support/sandbox-launch.js';
import type { SandboxLaunch } from '../sandbox-backend.js';
import { AGENT_SERVER_COMMAND, sandboxLayout } from '../container-layout.js';
import {
  containerOptions,
  exposeImageVariables,
  mountAgentServer,
  volumeOwner,
  sandboxReach,
} from './container.js';

const SESSION_KEY = 'the-session-key';
const ENGINE = {
  version: '28.0.0',
  processors: 4,
  knowsHostGateway: true,
  isRootless: false,
  isRemapped: false,
  machine: { hostname: null, kernel: null },
  defaultRuntime: null,
  rootDir: null,
};

function launch(changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return sandboxLaunch({
    id: 'AbCdEfGhIjKlMnOpQrStUv',
    sessionKey: SESSION_KEY,
    env: { LANG: 'C.UTF-8' },
    callbackUrl: 'http://host.docker.internal:3000/api/v1/webhooks',
    ...changes,
  });
}

function optionsFor(
  changes: Partial<SandboxLaunch> = {},
  network: string | null = null,
  engine = ENGINE,
  environment: Record<string, string> = {},
) {
  const requested = launch(changes);
  const options = {
    instanceId: 'test',
    ownNetwork: 'slipway-test',
    pidsLimit: 512,
    cpu: 2,
    memoryMb: 1024,
    environment,
  };
  const reach = sandboxReach({ network, listenAddress: null });
  return containerOptions(requested, sandboxLayout(requested, 'agent-image'), options, reach, engine, 1234);
}

describe('containerOptions', () => {
  it("passes on the operator's proxy, and none of the service's other variables", () => {
    const environment = { HTTPS_PROXY: 'http://proxy:3128', PATH: '/opt/bin' };
    const { Env = [] } = optionsFor({ env: { NO_PROXY: 'of-the-spec' } }, null, ENGINE, environment);
    expect(Env).toEqual(expect.arrayContaining(['HTTPS_PROXY=http://proxy:3128', 'NODE_USE_ENV_PROXY=1']));
    expect(Env).toContain('NO_PROXY=of-the-spec');
    expect(Env).not.toContain('PATH=/opt/bin');
  });

  it('drops every right that a sandbox does not need', () => {
    expect(optionsFor()).toMatchObject({
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
        Mounts: [
          { Type: 'volume', Source: 'slipway-AbCdEfGhIjKlMnOpQrStUv', Target: '/sandbox' },
          {
            Type: 'volume',
            Source: 'slipway-AbCdEfGhIjKlMnOpQrStUv',
            Target: '/workspace',
            // What an image has there must not become part of the sandbox.
            VolumeOptions: { NoCopy: true },
          },
        ],
      },
    });
  });

  it('never holds the session key of our own server', () => {
    const options = optionsFor();
    expect(JSON.stringify(options)).not.toContain(SESSION_KEY);
    expect(options).toMatchObject({ OpenStdin: true, StdinOnce: true });
    expect(options.Cmd?.slice(0, 2)).toEqual(['--workspace', '/sandbox/workspace/project']);
    expect(options.Env).toContain('HOME=/sandbox/home');
    expect(options.Env).toContain('SLIPWAY_WORKSPACE_NAME=/sandbox/project:/workspace/project');
    expect(optionsFor({ workingDir: '/workspace/project' }).Cmd?.slice(0, 2)).toEqual([
      '--workspace',
      '/sandbox/workspace',
    ]);
    expect(options.Env).toContain('OH_WEBHOOKS_0_BASE_URL=http://host.docker.internal:3000/api/v1/webhooks');
  });

  it('configures a stock agent server through its environment', () => {
    const program = { kind: 'image', image: 'stock:1', args: ['--port', '{port}'] } as const;
    const options = optionsFor({
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
      'OH_WORKSPACE_PATH=/workspace/project',
      'LANG=C.UTF-8',
      'PORT=8000',
      `OH_SESSION_API_KEYS_0=${SESSION_KEY}`,
    ]);
  });

  it('publishes the ports for agents and names them to tools', () => {
    const options = optionsFor({ ports: { WORKER_1: 8011 } });
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

  it('applies the resource limits of the launch', () => {
    expect(optionsFor({ cpu: 1.5, memoryMb: 256, runtime: 'runsc' }).HostConfig).toMatchObject({
      NanoCpus: 1.5e9,
      Memory: 268_435_456,
      Runtime: 'runsc',
    });
  });

  it('asks for no more processors than the engine has', () => {
    expect(optionsFor({ cpu: 16 }).HostConfig?.NanoCpus).toBe(4e9);
  });

  it('publishes no port for a service in a container', () => {
    const options = optionsFor({}, 'of-the-service');
    expect(options.HostConfig).toMatchObject({ NetworkMode: 'slipway-test' });
    expect(options.HostConfig).not.toHaveProperty('PortBindings');
    expect(options.HostConfig).not.toHaveProperty('ExtraHosts');
    expect(options).not.toHaveProperty('NetworkingConfig');
  });

  const EGRESS = { port: 3180, credential: 'secret', authority: null, isOnlyWay: true };

  it.each([[null], ['of-the-service']])('gives no network where a proxy is the only way: %s', (network) => {
    const options = optionsFor({ egress: EGRESS, ports: { WORKER_1: 8011 } }, network);
    expect(options.HostConfig).toMatchObject({ NetworkMode: 'none' });
    expect(options.HostConfig).not.toHaveProperty('PortBindings');
    expect(options.HostConfig).not.toHaveProperty('ExtraHosts');
    expect(options).not.toHaveProperty('NetworkingConfig');
  });

  it('leaves the network as it is where a proxy is there for credentials alone', () => {
    const without = optionsFor();
    const { HostConfig, Labels } = optionsFor({ egress: { ...EGRESS, isOnlyWay: false } });
    expect({ HostConfig, Labels }).toEqual({ HostConfig: without.HostConfig, Labels: without.Labels });
  });

  it('has programs use its proxy, and not the one of the operator', () => {
    const environment = { HTTPS_PROXY: 'http://proxy:3128' };
    const changes = { egress: EGRESS, env: { HTTPS_PROXY: 'of-the-spec' } };
    const { Env = [] } = optionsFor(changes, null, ENGINE, environment);
    expect(Env).toEqual(
      expect.arrayContaining([
        'SLIPWAY_LATE_PROXY=1',
        'HTTPS_PROXY=http://AbCdEfGhIjKlMnOpQrStUv:secret@127.0.0.1:3180',
      ]),
    );
    expect(Env.filter((variable) => /proxy:3128|of-the-spec/.test(variable))).toEqual([]);
  });

  it("prefers the specification's network", () => {
    expect(optionsFor({ network: 'mine' }, 'of-the-service')).toMatchObject({
      HostConfig: { NetworkMode: 'mine' },
      NetworkingConfig: { EndpointsConfig: { mine: { Aliases: ['slipway-abcdefghijklmnopqrstuv'] } } },
    });
    const published = optionsFor({ network: 'mine' });
    expect(published.HostConfig).toMatchObject({ NetworkMode: 'mine', PortBindings: { '8000/tcp': [{}] } });
    expect(published).not.toHaveProperty('NetworkingConfig');
  });

  it('names the host only to engines that support it', () => {
    expect(optionsFor({}, null, { ...ENGINE, knowsHostGateway: false }).HostConfig).not.toHaveProperty(
      'ExtraHosts',
    );
  });

  it.each(['host', 'none', 'container:other'])('refuses the network %s', (network) => {
    expect(() => optionsFor({ network })).toThrow(`"${network}"`);
  });

  it.each([
    [{ program: { kind: 'command', command: 'python', args: [] } }, /process sandboxes only/],
    [{ workingDir: '../elsewhere' }, /must be \/workspace\/project, relative or lie in \/sandbox/],
    [{ workingDir: '/srv' }, /must be \/workspace\/project, relative or lie in \/sandbox/],
    [
      { program: { kind: 'image', image: 'x', args: [] }, workingDir: '/srv' },
      /must be \/workspace\/project, relative or lie in \/workspace/,
    ],
  ] satisfies [Partial<SandboxLaunch>, RegExp][])('refuses %j', (changes, message) => {
    expect(() => optionsFor(changes)).toThrow(message);
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
])('exposes the variables of the image: %j and %j', (Env, variables, expected) => {
  expect(exposeImageVariables({ Image: 'i', Env }, variables)).toEqual({ Image: 'i', Env: expected });
});

const OPTIONS = {
  name: 'slipway-abc',
  Image: 'debian:13',
  Cmd: ['--workspace', '/sandbox'],
  Labels: { 'slipway.sandbox-id': 'abc' },
  User: '10001:10001',
  HostConfig: {
    ReadonlyRootfs: true,
    Mounts: [{ Type: 'volume' as const, Source: 'slipway-abc', Target: '/sandbox' }],
  },
};

it('starts our agent server as its image does', () => {
  const dockerfile = readFileSync(new URL('../../../../Dockerfile', import.meta.url), 'utf8');
  expect(dockerfile).toContain(`ENTRYPOINT ${JSON.stringify(AGENT_SERVER_COMMAND).replaceAll(',', ', ')}`);
});

describe('mountAgentServer', () => {
  it('adds the files, read-only, and the command, and removes nothing', () => {
    expect(mountAgentServer(OPTIONS, 'files')).toEqual({
      ...OPTIONS,
      Entrypoint: AGENT_SERVER_COMMAND,
      StopSignal: 'SIGTERM',
      HostConfig: {
        ReadonlyRootfs: true,
        Mounts: [
          ...OPTIONS.HostConfig.Mounts,
          { Type: 'volume', Source: 'files', Target: '/opt/slipway', ReadOnly: true },
        ],
      },
    });
  });
});

describe('volumeOwner', () => {
  it("has the sandbox's name, labels and volume, our image, and nothing else", () => {
    expect(volumeOwner(OPTIONS, 'sha256:ours')).toEqual({
      name: 'slipway-abc',
      Labels: OPTIONS.Labels,
      Image: 'sha256:ours',
      HostConfig: { NetworkMode: 'none', Mounts: OPTIONS.HostConfig.Mounts },
    });
  });
});
