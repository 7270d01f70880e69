import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import {
  AGENT_SERVER_COMMAND,
  type AgentServerVolume,
  staleVolumes,
  readyMarkOf,
  mountAgentServer,
  readyVolume,
  volumeOwner,
} from './agent-server-volumes.js';

const NOW = 10_000_000;
const files = (name: string, image = 'sha256:new', createdAt = 0): AgentServerVolume => ({
  name,
  image,
  createdAt,
});
const marked = (name: string, image?: string, createdAt?: number): AgentServerVolume[] => [
  files(readyMarkOf(name), image, createdAt),
  files(name, image, createdAt),
];

it.each([
  ['nothing', [], null],
  ['files that nobody marked', [files('a')], null],
  ['a mark whose files are gone', [files(readyMarkOf('a'))], null],
  ['what is marked', [files('a'), ...marked('b')], 'b'],
  ['one of two, always the same', [...marked('b'), ...marked('a')], 'a'],
  ['no files of another image', marked('a', 'sha256:old'), null],
])('readyVolume takes %s', (_, volumes, expected) => {
  expect(readyVolume(volumes, 'sha256:new')).toBe(expected);
});

it.each([
  ['nothing of what is in use', marked('a'), 'sha256:new', []],
  ['what is of another image', marked('a', 'sha256:old'), 'sha256:new', ['a-ready', 'a']],
  ['everything where there is no image', marked('a'), null, ['a-ready', 'a']],
  ['what was never marked', [...marked('a'), files('b')], 'sha256:new', ['b']],
  ['the second of two', [...marked('b'), ...marked('a')], 'sha256:new', ['b-ready', 'b']],
  ['nothing that may be just being filled', [files('b', 'sha256:new', NOW - 1000)], 'sha256:new', []],
])('leftAgentFiles lists %s', (_, volumes, image, expected) => {
  expect(staleVolumes(volumes, image, NOW)).toEqual(expected);
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
  const dockerfile = readFileSync(new URL('../../../../../Dockerfile', import.meta.url), 'utf8');
  expect(dockerfile).toContain(`ENTRYPOINT ${JSON.stringify(AGENT_SERVER_COMMAND).replaceAll(',', ', ')}`);
});

describe('mountAgentServer', () => {
  it('adds the files, read-only, and the command, and takes nothing away', () => {
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
