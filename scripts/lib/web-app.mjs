import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';

/** The tested version, and the digest of its archive, so that no other one passes for it. */
const PACKAGE = '@openhands/agent-canvas';
const VERSION = '1.20.0';
const INTEGRITY =
  'sha512-uq28bmdMapsDN0ltp5ZHYm9xfuk7cHktNkd0NY38w/UTq25wJTqSKSPya+2+ky0+HpGX2vmn0uF3mHuNCoOb2w==';
/** The folder of its built files, which need none of the packages that it was built from. */
const BUILT = 'package/build';

/**
 * Installs the web application if it is not installed yet. Runs no code of the package.
 *
 * @param {string} folder holds one folder for each version
 * @returns {string} the folder with the page
 * @throws {Error} when npm does not have the package, or its archive is not the tested one
 */
export function installWebApp(folder) {
  const target = path.resolve(folder, `agent-canvas-${VERSION}`);
  if (existsSync(path.join(target, 'index.html'))) {
    return target;
  }
  process.stderr.write(`Installing ${PACKAGE} ${VERSION}…\n`);
  mkdirSync(folder, { recursive: true });
  const partial = mkdtempSync(path.resolve(folder, '.partial-'));
  try {
    const args = ['pack', '--loglevel=error', '--ignore-scripts', '--pack-destination', partial];
    const name = run('npm', [...args, `${PACKAGE}@${VERSION}`])
      .trim()
      .split('\n')
      .at(-1);
    const archive = path.join(partial, name);
    const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
    if (found !== INTEGRITY) {
      throw new Error(`${PACKAGE} ${VERSION} is not the archive that was tested: ${found}`);
    }
    run('tar', ['-xzf', archive, '-C', partial, BUILT]);
    rmSync(target, { recursive: true, force: true });
    renameSync(path.join(partial, BUILT), target);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return target;
}

function run(program, args) {
  const { status, error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (error || status !== 0) {
    throw new Error(`failed to run ${program} ${args[0]}: ${error?.message ?? stderr.trim()}`);
  }
  return stdout;
}
