import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * The folder that holds the product: the nearest one above this file with a `package.json`. It is the same from `src`,
 * from `dist` and from the bundle, whose files lie elsewhere than their sources.
 *
 * @throws Error when there is none
 */
export function productFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(path.join(folder, 'package.json'))) {
    const parent = path.dirname(folder);
    if (parent === folder) {
      throw new Error(`there is no package.json above ${import.meta.dirname}`);
    }
    folder = parent;
  }
  return folder;
}

/** The version in the product's `package.json`. */
export function productVersion(): string {
  const file = path.join(productFolder(), 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
