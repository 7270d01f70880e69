import { expect, it } from '@jest/globals';
import { stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { useFolder } from '../../../../test/support/use-folder.js';
import { parseConfig } from '../../../config/load-config.js';
import { dockerBackend } from './docker.descriptor.js';

const folder = useFolder();

function create(dataDir: string): ReturnType<typeof dockerBackend.create> {
  const { sandboxes, egress } = parseConfig({ SANDBOX_BACKEND: 'docker' }, false);
  const setup = { instanceId: 'test', hostId: 'test', callbackUrl: () => '', hiddenPaths: [], allow: [] };
  return dockerBackend.create({ sandboxes, egress, dataDir, defaults: { cpu: 1, memoryMb: 512 }, ...setup });
}

it('containers without rules need no folder that can be written', async () => {
  await expect(create('/dev/null/data')).resolves.toMatchObject({ kind: 'docker' });
});

it('the proxy listens where no link leads to', async () => {
  const { path: data } = folder;
  await symlink(data, `${data}/link`);
  const place = { dataDir: `${data}/link`, port: 3180, dockerNetwork: null, serviceAddress: '127.0.0.1' };
  const { EGRESS_PROXY_LISTEN: listen } = await dockerBackend.proxyEnvironment(place);
  expect(path.dirname(listen)).toBe(`unix:${data}/sockets/proxies`);
  expect((await stat(`${data}/sockets`)).mode & 0o777).toBe(0o700);
});
