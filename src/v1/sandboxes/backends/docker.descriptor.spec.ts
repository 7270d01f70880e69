import { expect, it } from '@jest/globals';
import { mkdtemp, realpath, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseConfig } from '../../../config/load-config.js';
import { dockerBackend } from './docker.descriptor.js';

function create(dataDir: string): ReturnType<typeof dockerBackend.create> {
  const { sandboxes, egress } = parseConfig({ SANDBOX_BACKEND: 'docker' }, false);
  const setup = { instanceId: 'test', hostId: 'test', callbackUrl: () => '', hiddenPaths: [], allow: [] };
  return dockerBackend.create({ sandboxes, egress, dataDir, defaults: { cpu: 1, memoryMb: 512 }, ...setup });
}

it('containers without rules need no folder that can be written', async () => {
  await expect(create('/dev/null/data')).resolves.toMatchObject({ kind: 'docker' });
});

it('the proxy listens where no link leads to', async () => {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'data-')));
  try {
    await symlink(folder, `${folder}/link`);
    const place = { dataDir: `${folder}/link`, port: 3180, dockerNetwork: null, serviceAddress: '127.0.0.1' };
    const { EGRESS_PROXY_LISTEN: listen } = await dockerBackend.proxyEnvironment(place);
    expect(path.dirname(listen)).toBe(`unix:${folder}/sockets/proxies`);
    expect((await stat(`${folder}/sockets`)).mode & 0o777).toBe(0o700);
  } finally {
    await rm(folder, { recursive: true });
  }
});
