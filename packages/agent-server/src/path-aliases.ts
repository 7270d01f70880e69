import path from 'node:path';
import { lstat, mkdir, rename, symlink } from 'node:fs/promises';
import { errorCode, unlessCode } from '@slipway/common/errors/error-message.js';
import { log } from './observability.js';

/** Another name that clients know a folder by. Both are absolute; the folder's own name is the one that tools see. */
export interface PathAlias {
  name: string;
  folder: string;
}

/** The path that tools would use; it only compares texts, and the view of tools decides what may be used. */
export function resolvePath(aliases: readonly PathAlias[], base: string, given: string): string {
  const absolute = path.resolve('/', base, given);
  if (aliases.some(({ folder }) => isInside(absolute, folder))) {
    return absolute;
  }
  const matching = aliases.filter(({ name }) => isInside(absolute, name));
  const [closest] = matching.toSorted((a, b) => b.name.length - a.name.length);
  return closest === undefined ? absolute : path.join(closest.folder, path.relative(closest.name, absolute));
}

/** Reads `NAME=FOLDER`. @throws TypeError */
export function parseAlias(text: string): PathAlias {
  const [name, folder] = absolutePair(text, '=', '--alias must be NAME=FOLDER, both absolute');
  return { name, folder };
}

function absolutePair(text: string, separator: string, problem: string): [string, string] {
  const [first = '', second = '', ...rest] = text.split(separator);
  if (!path.isAbsolute(first) || !path.isAbsolute(second) || rest.length > 0) {
    throw new TypeError(problem);
  }
  return [path.resolve(first), path.resolve(second)];
}

function isInside(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder === '/' ? folder : `${folder}/`);
}

/** A folder with two names, because the volume that it is in is mounted twice. */
export interface WorkspaceName {
  /** Where the folder is, in the same mount as the configured workspace. */
  folder: string;
  name: string;
}

/**
 * Gives the workspace the name that clients assume, and returns the options that change. A moved workspace leaves a
 * link, because scripts may have its old path; one that cannot be moved gets an alias.
 */
export async function nameWorkspace(
  workspace: string,
  { folder, name }: WorkspaceName,
): Promise<{ workspace: string; aliases: PathAlias[]; fileRoots: string[] }> {
  const parent = path.dirname(name);
  if (!isInside(workspace, folder) && !(await moveTo(workspace, folder))) {
    return { workspace, aliases: [{ name, folder: workspace }], fileRoots: [parent] };
  }
  const named = isInside(workspace, folder) ? path.join(name, path.relative(folder, workspace)) : name;
  return { workspace: named, aliases: [{ name: workspace, folder: named }], fileRoots: [parent, folder] };
}

/** @returns whether the folder is there, and its old name leads to it */
async function moveTo(from: string, to: string): Promise<boolean> {
  if (isInside(to, from)) {
    return false;
  }
  const [old, current] = await Promise.all([kindOf(from), kindOf(to)]);
  if (old === 'folder' && current !== null) {
    log('warn', 'failed to rename workspace', { from, to, error: 'the name is taken' });
    return false;
  }
  try {
    if (old === 'folder') {
      await rename(from, to);
    } else {
      await mkdir(to, { recursive: true });
    }
    if (old !== 'link') {
      await mkdir(path.dirname(from), { recursive: true });
      await symlink(path.relative(path.dirname(from), to), from);
    }
    return true;
  } catch (error) {
    log('warn', 'failed to rename workspace', { from, to, error: errorCode(error) });
    return (await kindOf(from)) !== 'folder';
  }
}

async function kindOf(file: string): Promise<'folder' | 'link' | 'other' | null> {
  const found = await unlessCode('ENOENT', lstat(file));
  return found && (found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : 'other');
}

/** Reads `FOLDER:NAME`; null for nothing. @throws TypeError */
export function parseWorkspaceName(text: string | undefined): WorkspaceName | null {
  if (!text) {
    return null;
  }
  const problem = 'SLIPWAY_WORKSPACE_NAME must be FOLDER:NAME, both absolute';
  const [folder, name] = absolutePair(text, ':', problem);
  return { folder, name };
}
