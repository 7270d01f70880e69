import { describe, expect, it } from '@jest/globals';
import { canMountProject, projectMounts } from './project-folder.js';
import { sandboxPaths } from './sandbox-files.js';

describe('the project can be mounted', () => {
  it.each([
    [true, ['/usr', '/srv/app/dist', '/workspaces/app']],
    [true, []],
    [false, ['/usr', '/workspace/app/dist']],
    [false, ['/workspace']],
    [false, ['/workspace/project/data/sandboxes']],
  ])('%s where a sandbox needs %j', async (expected, needed) => {
    expect(await canMountProject(needed)).toBe(expected);
  });
});

it('has all of the machine but what has its name', async () => {
  const mounts = await projectMounts(sandboxPaths('/data', 'a', 'workspace'));
  expect(mounts.slice(0, 2)).toEqual(['--tmpfs', '/']);
  expect(mounts.join(' ')).toContain(' --ro-bind-try /usr /usr ');
  expect(mounts.slice(-6)).toEqual([
    '--bind',
    '/data/a/shared',
    '/workspace',
    '--bind',
    '/data/a/box/workspace',
    '/workspace/project',
  ]);
});
