import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { AGENT_SERVER_COMMAND, mountAgentServer, volumeOwner } from './mount-agent-server.js';

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
