import { existsSync, globSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';

/** Made by other programs than the compiler. */
const BUNDLED = /^(service|bundle|swagger-ui|console)\//;

/** What was compiled from a source that is gone. The compiler writes only what has changed, so times say nothing. */
export function removeOrphans(compiled, sources) {
  for (const name of globSync('**/*.{js,js.map,d.ts,d.ts.map}', { cwd: compiled })) {
    const source = name.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts');
    if (!BUNDLED.test(name) && !existsSync(path.join(sources, source))) {
      rmSync(path.join(compiled, name));
    }
  }
}

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
