import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../../test/support/use-folder.js';
import { cgroupPlaces, findCgroups } from './cgroups.js';

const mount = (root: string, folder: string, type: string, options: string): string =>
  `36 35 0:30 ${root} ${folder} rw,nosuid shared:10 - ${type} cgroup rw,${options}`;

describe('which hierarchies are mounted', () => {
  it.each([
    [
      'the second version, in a unit of systemd',
      [mount('/', '/sys/fs/cgroup', 'cgroup2', 'nsdelegate')],
      '0::/system.slice/slipway.service',
      [
        {
          version: 2,
          resources: [],
          root: '/sys/fs/cgroup',
          own: '/sys/fs/cgroup/system.slice/slipway.service',
        },
      ],
    ],
    [
      'the first version, two resources in one',
      [
        mount('/', '/cg/cpu,cpuacct', 'cgroup', 'cpuacct,cpu'),
        mount('/', '/cg/my\\040pids', 'cgroup', 'pids'),
      ],
      '5:cpu,cpuacct:/user\n4:pids:/\n1:name=systemd:/x',
      [
        { version: 1, resources: ['cpu'], root: '/cg/cpu,cpuacct', own: '/cg/cpu,cpuacct/user' },
        { version: 1, resources: ['pids'], root: '/cg/my pids', own: '/cg/my pids' },
      ],
    ],
    [
      'a container that sees its own part under the name of the whole',
      [mount('/docker/abc', '/cg/memory', 'cgroup', 'memory')],
      '4:memory:/docker/abc/inner',
      [{ version: 1, resources: ['memory'], root: '/cg/memory', own: '/cg/memory/inner' }],
    ],
    [
      'a container with a namespace of its own',
      [mount('/../../docker/abc', '/cg/memory', 'cgroup', 'memory')],
      '4:memory:/',
      [{ version: 1, resources: ['memory'], root: '/cg/memory', own: '/cg/memory' }],
    ],
    ['no cgroups', [mount('/', '/proc', 'proc', 'rw'), mount('/', '/cg', 'cgroup', 'freezer')], '', []],
  ])('%s', (_, mounts, membership, expected) => {
    expect(cgroupPlaces({ mounts: mounts.join('\n'), membership })).toEqual(expected);
  });
});

describe('groups of the second version', () => {
  const folder = useFolder();
  let root: string;
  let own: string;

  beforeEach(async () => {
    root = folder.path;
    own = path.join(root, 'unit');
    await mkdir(own);
    await writeFile(path.join(own, 'cgroup.controllers'), 'cpuset cpu io memory pids\n');
    await writeFile(path.join(own, 'cgroup.subtree_control'), 'memory\n');
  });

  const sources = () => ({ mounts: mount('/', root, 'cgroup2', 'nsdelegate'), membership: '0::/unit' });

  it('get their limits', async () => {
    // The kernel makes these files with the folder; here they have to be there before.
    await writeFile(path.join(own, 'cgroup.subtree_control'), 'cpu memory pids\n');
    const { cgroups: first, problem } = await findCgroups('owner', sources());
    expect(first.hierarchies).toEqual([]);
    expect(problem).toMatch(/^ENOENT.*; a unit of systemd needs Delegate=yes$/);
    const made = (await readdir(own)).find((name) => name.startsWith('slipway-')) ?? '';
    await writeFile(path.join(own, made, 'cgroup.subtree_control'), 'cpu memory pids\n');

    const { cgroups } = await findCgroups('owner', sources());
    expect([...cgroups.resources].toSorted()).toEqual(['cpu', 'memory', 'pids']);
    const files = await cgroups.create('id.run', { processes: 5, memoryBytes: 1000, cpu: 0.5 });
    const group = path.join(own, made, 'id.run');
    expect(files).toEqual([path.join(group, 'cgroup.procs')]);
    const text = async (name: string) => await readFile(path.join(group, name), 'utf8');
    expect(await text('pids.max')).toBe('5');
    expect(await text('memory.max')).toBe('1000');
    expect(await text('memory.swap.max')).toBe('0');
    expect(await text('cpu.max')).toBe('50000 100000');
    await cgroups.seal('id.run');
    expect(await text('pids.max')).toBe('0');
    await writeFile(path.join(group, 'memory.events'), 'low 0\noom 3\noom_kill 2\noom_group_kill 0\n');
    expect(await cgroups.memoryKills('id.run')).toBe(2);
    expect(await cgroups.memoryKills('another.run')).toBe(0);
    expect(await cgroups.names()).toEqual(['id.run']);
  });

  it('are not there where the kernel offers nothing to limit', async () => {
    await writeFile(path.join(own, 'cgroup.controllers'), 'hugetlb\n');
    const { cgroups } = await findCgroups('owner', sources());
    expect(cgroups.hierarchies).toEqual([]);
    await expect(stat(path.join(own, 'slipway-service'))).rejects.toThrow('ENOENT');
  });
});
