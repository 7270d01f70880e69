import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  isShown,
  machineView,
  type Mount,
  neededFiles,
  neededMounts,
  rootArguments,
} from './machine-view.js';
import { useFolder } from '../../../../test/support/use-folder.js';
import { PROCESS_BACKEND_DEFAULTS, type ProcessBackendOptions } from './process.options.js';

const folder = useFolder();
const shown = (path: string): Mount => ({ path, kind: 'shown' });
const hidden = (path: string, isFolder = true): Mount => ({ path, kind: 'hidden', isFolder });
const own = (path: string): Mount => ({ path, kind: 'own', source: `/data/one${path}`, isWritable: true });
const link = (path: string, target: string): Mount => ({ path, kind: 'link', target });

describe('neededMounts', () => {
  it.each<[string, Mount[], Mount[]]>([
    ['what is shown twice', [shown('/usr'), shown('/usr/local/node'), shown('/usr')], [shown('/usr')]],
    ['no folder of a similar name', [shown('/usr'), shown('/usr-x')], [shown('/usr'), shown('/usr-x')]],
    ['nothing to hide where nothing is shown', [hidden('/srv/data'), shown('/usr')], [shown('/usr')]],
    [
      'what hides in what is shown, and what is shown in that',
      [shown('/srv'), hidden('/srv/data'), shown('/srv/data/public/x'), hidden('/srv/data/public')],
      [shown('/srv'), hidden('/srv/data'), shown('/srv/data/public/x')],
    ],
    [
      'what hides before what shows the same',
      [shown('/srv'), shown('/srv/a'), hidden('/srv/a')],
      [shown('/srv'), hidden('/srv/a')],
    ],
    [
      "a sandbox's own before all",
      [shown('/etc'), shown('/etc/passwd'), own('/etc/passwd')],
      [shown('/etc'), own('/etc/passwd')],
    ],
    [
      'a link, unless its folder is shown, or tools could replace it',
      [
        own('/tmp'),
        link('/bin', '/usr/bin'),
        shown('/usr'),
        link('/usr/x', '/opt/x'),
        link('/tmp/x', '/opt/x'),
      ],
      [link('/bin', '/usr/bin'), own('/tmp'), shown('/usr')],
    ],
    [
      'a folder of its own above what is mounted in a temporary one',
      [own('/tmp'), shown('/tmp/app/dist/a'), shown('/tmp/app/dist/b')],
      [own('/tmp'), { path: '/tmp/app', kind: 'anchor' }, shown('/tmp/app/dist/a'), shown('/tmp/app/dist/b')],
    ],
  ])('keeps %s', (_, mounts, expected) => {
    expect(neededMounts(mounts)).toEqual(expected);
  });
});

describe('rootArguments', () => {
  it('mounts parents first, and closes what it created', () => {
    const mounts = [
      shown('/opt/a/b'),
      link('/bin', '/usr/bin'),
      own('/tmp'),
      shown('/srv'),
      hidden('/srv/key', false),
    ];
    const expected = [
      '--tmpfs /',
      '--symlink /usr/bin /bin',
      '--perms 0755 --dir /opt --perms 0755 --dir /opt/a',
      '--ro-bind-try /opt/a/b /opt/a/b',
      '--ro-bind-try /srv /srv',
      '--ro-bind /dev/null /srv/key',
      '--bind /data/one/tmp /tmp',
      '--remount-ro /',
    ];
    expect(rootArguments(mounts).join(' ')).toBe(expected.join(' '));
  });
});

const options: ProcessBackendOptions = {
  ...PROCESS_BACKEND_DEFAULTS,
  folder: '/var/lib/slipway/sandboxes',
  instanceId: 'i',
  hostId: 'h',
  isolation: 'bwrap',
  hiddenPaths: ['/usr/share'],
  agentServer: { node: process.execPath, entry: import.meta.filename, relay: '', args: [] },
  network: { mode: 'auto', allow: [] },
  egressPort: 0,
  environment: { SSL_CERT_FILE: '/proc/version' },
  readPaths: ['/proc/filesystems', '/no/such/folder'],
};

describe('machineView', () => {
  it('has the system, what the agent server and the operator need, and nothing else', async () => {
    const view = await machineView(options, '/box/resolv.conf');
    const sees = (name: string): boolean => isShown(view, name);
    for (const name of [
      '/usr/bin/env',
      '/etc/passwd',
      '/proc/version',
      '/proc/filesystems',
      process.execPath,
    ]) {
      expect([name, sees(name)]).toEqual([name, true]);
    }
    for (const name of [
      '/etc/slipway/keys',
      '/etc/shadow',
      '/etc/ssl/private/key.pem',
      '/home/x',
      '/usr/share/x',
      '/var/lib/x',
    ]) {
      expect([name, sees(name)]).toEqual([name, false]);
    }
    expect(view.find(({ kind }) => kind === 'own')).toMatchObject({ source: '/box/resolv.conf' });
  });
});

it('neededFiles has what is installed with node, and nothing else of the folder that it is in', async () => {
  const home = folder.path;
  const node = path.join(home, 'bin/node');
  const agentServer = { ...options.agentServer, node, entry: '/srv/app/dist/bundle/agent-server/main.js' };
  const needed = async () => await neededFiles({ ...options, agentServer, readPaths: [], environment: {} });
  expect(await needed()).toEqual([node, '/srv/app/dist/bundle']);
  await mkdir(path.join(home, 'include/node'), { recursive: true });
  const installed = ['bin', 'lib', 'include/node'].map((name) => path.join(home, name));
  expect(await needed()).toEqual([node, ...installed, '/srv/app/dist/bundle']);
});
