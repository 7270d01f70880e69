import path from 'node:path';
import type { KeptFile } from './kept-changes.repository.js';

/** A copy as a request asks for it. */
export interface Kept {
  as_of: string;
  /** What was asked for; as those of the files, absolute. */
  place: string;
  files: readonly (KeptFile & { place: string })[];
}

export function keptChangesBelow({ as_of, place, files }: Kept): unknown {
  return files.flatMap(({ place: file, status }) => {
    const below = path.posix.relative(place, file);
    return below === '' || below.startsWith('../') ? [] : [{ status, path: below, as_of }];
  });
}

/** Undefined: that file was not kept. */
export function keptDiffOf({ as_of, place, files }: Kept): unknown {
  const diff = files.find((file) => file.place === place)?.diff;
  return diff && { ...diff, as_of };
}

/** @param name absolute, or below the folder */
export function keptAt(
  { asOf, files }: { asOf: Date; files: readonly KeptFile[] },
  workingDir: string,
  name: string,
): Kept {
  const folder = path.posix.resolve('/', workingDir);
  return {
    as_of: asOf.toISOString(),
    place: path.posix.resolve(folder, name),
    files: files.map((file) => ({ ...file, place: path.posix.join(folder, file.path) })),
  };
}
