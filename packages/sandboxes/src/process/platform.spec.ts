import { describe, expect, it } from '@jest/globals';
import { canMountProject } from './platform.js';

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
