import { lstat, realpath } from 'node:fs/promises';
import path from 'node:path';

/** What a sandbox sees of the machine's files beside its own: all but what is hidden, read-only. */
export interface VisibleFiles {
  /** Folders that look empty; none lies in another one. */
  hiddenFolders: string[];
  hiddenFiles: string[];
  /** Read-only exceptions inside of what is hidden. */
  exposed: string[];
}

/** Replaced by the sandbox's own folder, so what lies there is hidden as well. */
export const TEMPORARY_FOLDERS = ['/tmp', '/var/tmp'] as const;

export interface VisibilityInput {
  /** Files and folders that are there, by their real paths. */
  hidden: readonly { path: string; folder: boolean }[];
  /** Files and folders that programs need, wherever they lie. */
  needed: readonly string[];
}

/** Decides what to mount; `/` itself is never hidden. */
export function visibleFiles({ hidden, needed }: VisibilityInput): VisibleFiles {
  const wanted = hidden.filter(
    ({ path: name }) => name !== '/' && !TEMPORARY_FOLDERS.some((folder) => isIn(name, folder)),
  );
  const folders = [...new Set(wanted.flatMap((entry) => (entry.folder ? [entry.path] : [])))];
  const hiddenFolders = folders.filter((one) => !folders.some((other) => other !== one && isIn(one, other)));
  const hiddenFiles = wanted.flatMap((entry) =>
    entry.folder || hiddenFolders.some((folder) => isIn(entry.path, folder)) ? [] : [entry.path],
  );
  const covered = [...hiddenFolders, ...TEMPORARY_FOLDERS];
  const exposed = [...new Set(needed)].filter((name) => covered.some((folder) => isIn(name, folder)));
  return { hiddenFolders, hiddenFiles, exposed };
}

/** Those paths that exist, links followed. */
export async function existing(paths: readonly string[]): Promise<{ path: string; folder: boolean }[]> {
  const found = await Promise.all(
    paths.map(async (name) => {
      const real = await realpath(name).catch(() => null);
      return real === null ? [] : [{ path: real, folder: (await lstat(real)).isDirectory() }];
    }),
  );
  return found.flat();
}

/**
 * What our agent server is made of: the node that runs it, the built code, its libraries. Where node lies in a folder
 * of its own (`…/v24/bin/node`), what comes with it (npm) is part of it.
 */
export function programFiles(node: string, entry: string): { product: string; files: string[] } {
  const product = path.resolve(path.dirname(entry), '../..');
  const files = ['dist', 'node_modules', 'package.json'].map((name) => path.join(product, name));
  const bin = path.dirname(node);
  const prefix = path.dirname(bin);
  const isOwnFolder = path.basename(bin) === 'bin' && !isIn(product, prefix) && prefix !== '/';
  return { product, files: [isOwnFolder ? prefix : node, ...files] };
}

function isIn(name: string, folder: string): boolean {
  return name === folder || name.startsWith(`${folder}/`);
}
