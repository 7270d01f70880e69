import { describe, expect, it } from '@jest/globals';
import { containerFacts, type InspectedContainer, type SandboxReach, sandboxReach } from './container.js';

const LOOPBACK: SandboxReach = { by: 'port', hostIp: '127.0.0.1', urlHost: '127.0.0.1' };
const PUBLISHED = { '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: '32769' }] };

/** The part of the engine's response that is read. */
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
  ])('reports %s as %s', (Status, expected) => {
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
    [{ by: 'socket', socket: (id, port) => `/data/${id}/${port}.sock` }, {}, 'unix:/data/AbC/8000.sock'],
  ] satisfies [SandboxReach, InspectedContainer['NetworkSettings']['Ports'], string | null][])(
    'finds the address for %j',
    (reach, ports, address) => {
      expect(containerFacts(container({ Status: 'running' }, ports), reach).address).toBe(address);
    },
  );

  it.each<[SandboxReach, Record<string, string>]>([
    [LOOPBACK, { WORKER_1: 'http://127.0.0.1:32770' }],
    [{ by: 'name' }, { WORKER_1: 'http://slipway-abc:8011' }],
    [{ by: 'port', hostIp: '10.0.0.1', urlHost: '10.0.0.1' }, {}],
  ])('finds the addresses of the ports for agents: %j', (reach, ports) => {
    const published = { ...PUBLISHED, '8011/tcp': [{ HostIp: '127.0.0.1', HostPort: '32770' }] };
    expect(containerFacts(container({ Status: 'running' }, published), reach).ports).toEqual(ports);
    expect(containerFacts(container({ Status: 'exited' }, published), reach).ports).toEqual({});
  });

  it.each([
    [{ Status: 'created' }, null],
    [{ Status: 'created', ExitCode: 127 }, { code: 127 }],
    [{ ExitCode: 7 }, { code: 7 }],
    [
      { ExitCode: 137, OOMKilled: true },
      { code: 137, outOfMemory: true },
    ],
    // A tool was killed for its memory, some time ago.
    [{ ExitCode: 0, OOMKilled: true }, { code: 0 }],
    [{ Status: 'running' }, null],
  ])('reports how %j ended', (state, ended) => {
    const exit = ended && { signal: null, outOfMemory: false, ...ended };
    expect(containerFacts(container(state), LOOPBACK)).toMatchObject({ exit });
  });
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
