import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The nearest folder with a `package.json`: the same from `src`, `dist` and the bundle. @throws Error without one */
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

export function productVersion(): string {
  const file = path.join(productFolder(), 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
