import { globSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Each build writes all of its bundles. A service that still runs loads chunks of the build before this one, so those
 * stay until the next build.
 *
 * @param {Date} previous when the build before this one began
 */
export function removeOlder(bundles, previous) {
  for (const name of globSync('**/*', { cwd: bundles })) {
    const file = path.join(bundles, name);
    const found = statSync(file);
    if (found.isFile() && found.mtime < previous) {
      rmSync(file);
    }
  }
}
