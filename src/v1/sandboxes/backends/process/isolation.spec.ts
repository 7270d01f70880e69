import { describe, expect, it } from '@jest/globals';
import { existingPaths, programFiles, visibleFiles } from './isolation.js';

const folder = (path: string) => ({ path, folder: true });

describe('visibleFiles', () => {
  it('hides each folder once, and never everything', () => {
    const hidden = [
      folder('/srv/app'),
      folder('/srv/app/data'),
      folder('/srv/application'),
      folder('/'),
      folder('/srv/app'),
      { path: '/srv/app/.env', folder: false },
      { path: '/etc/keys', folder: false },
      folder('/tmp/data'),
      { path: '/tmp/key', folder: false },
    ];
    expect(visibleFiles(hidden, [])).toEqual({
      hiddenFolders: ['/srv/app', '/srv/application'],
      hiddenFiles: ['/etc/keys'],
      exposed: [],
    });
  });

  it('exposes needed files that would be hidden', () => {
    const needed = ['/srv/app/dist', '/usr/bin/node', '/tmp/checkout/dist', '/srv/app/dist'];
    expect(visibleFiles([folder('/srv/app')], needed).exposed).toEqual([
      '/srv/app/dist',
      '/tmp/checkout/dist',
    ]);
  });
});

describe('programFiles', () => {
  it.each([
    ['/usr/bin/node', '/usr'],
    ['/bin/node', '/bin/node'],
    ['/home/me/.nvm/v24/bin/node', '/home/me/.nvm/v24'],
    ['/home/me/bin/node', '/home/me/bin/node'],
    ['/home/me/node', '/home/me/node'],
  ])('%s needs %s', (node, expected) => {
    expect(programFiles(node, '/home/me/app/dist/bundle/agent-server/main.js')).toEqual({
      product: '/home/me/app',
      files: [expected, '/home/me/app/dist/bundle'],
    });
  });
});

it('existingPaths drops what does not exist', async () => {
  expect(await existingPaths(['/etc/passwd', '/no/such/file', '/usr'])).toEqual([
    { path: '/etc/passwd', folder: false },
    { path: '/usr', folder: true },
  ]);
});
