import path from 'node:path';

/** Another name that clients know a folder by. Both are absolute; the folder's own name is the one that tools see. */
export interface PathAlias {
  name: string;
  folder: string;
}

/**
 * The path that tools would use for a path of a client: absolute, relative to `base`, without aliases. It only
 * compares texts; whether a path may be used is for the view of tools to decide.
 */
export function resolvePath(aliases: readonly PathAlias[], base: string, given: string): string {
  const absolute = path.resolve('/', base, given);
  if (aliases.some(({ folder }) => isInside(absolute, folder))) {
    return absolute;
  }
  const matching = aliases.filter(({ name }) => isInside(absolute, name));
  const [closest] = matching.toSorted((a, b) => b.name.length - a.name.length);
  return closest === undefined ? absolute : path.join(closest.folder, path.relative(closest.name, absolute));
}

/**
 * Reads `NAME=FOLDER`.
 * @throws TypeError
 */
export function parseAlias(text: string): PathAlias {
  const [name = '', folder = '', ...rest] = text.split('=');
  if (!path.isAbsolute(name) || !path.isAbsolute(folder) || rest.length > 0) {
    throw new TypeError('--alias must be NAME=FOLDER, both absolute');
  }
  return { name: path.resolve(name), folder: path.resolve(folder) };
}

function isInside(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder === '/' ? folder : `${folder}/`);
}
