import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { describeFailure } from '../failure.js';
import { ToolInputError } from './tool.js';

/**
 * The real path behind a path in the workspace, links followed; a relative one starts at the workspace. It need not
 * exist, but what exists of it must lie inside.
 *
 * @throws ToolInputError when it leads out of the workspace
 */
export async function workspacePath(workspace: string, path: string): Promise<string> {
  const root = await realpath(workspace);
  const asked = isAbsolute(path) ? resolve(path) : resolve(workspace, path);
  const real = await realOf(asked);
  if (real === null || !isInside(root, real)) {
    throw new ToolInputError(`${path} is not inside the workspace ${workspace}.`);
  }
  return real;
}

/** null: a link that leads nowhere, which would decide by itself where a file is made. */
async function realOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (describeFailure(error).code !== 'ENOENT') {
      throw error;
    }
  }
  if (await isDanglingLink(path)) {
    return null;
  }
  const parent = dirname(path);
  if (parent === path) {
    return null;
  }
  const realParent = await realOf(parent);
  return realParent === null ? null : join(realParent, basename(path));
}

async function isDanglingLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    return false;
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
