// Runs a conversation with the stock OpenHands agent server, if it can be installed here: npm run test:stock.
// Exits with 0 when that works, 1 when it fails, 77 when it could not be tried.
//
// With --image NAME it runs in a pod of the cluster of KUBECONFIG, whose nodes must have the image: the stock one, or
//   docker build --tag slipway-stock:trial packages/agent-server/test/stock
//
// With --outside its sandbox has a network of its own, and placeholders in place of keys; that needs bubblewrap and slirp4netns.
//
// PYTHON       a Python of at least 3.12 (by default python3.14, 3.13 and 3.12 are looked for, pyenv's included)
// STOCK_VENV   a virtual environment to use, created if it does not exist; by default a temporary one
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

/** The version with which this last worked. */
const VERSION = '1.58.2';
const PACKAGES = ['openhands-agent-server', 'openhands-sdk', 'openhands-tools'].map(
  (name) => `${name}==${VERSION}`,
);
const CANNOT = 77;

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const say = (text) => process.stdout.write(`${text}\n`);

/** Runs a program; its output is shown only when it fails. */
function succeeds(program, args) {
  const { status, error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) {
    return true;
  }
  const output = error ? String(error) : `${stdout}${stderr}`;
  say(output.trim().split('\n').slice(-15).join('\n'));
  return false;
}

function isNewEnough(python) {
  const check = 'import sys; sys.exit(0 if sys.version_info >= (3, 12) else 1)';
  return spawnSync(python, ['-c', check], { stdio: 'ignore' }).status === 0;
}

function findPython() {
  const given = process.env['PYTHON'];
  const versions = path.join(process.env['PYENV_ROOT'] ?? path.join(homedir(), '.pyenv'), 'versions');
  const pyenv = existsSync(versions)
    ? readdirSync(versions).map((version) => path.join(versions, version, 'bin', 'python3'))
    : [];
  const candidates = given ? [given] : ['python3.14', 'python3.13', 'python3.12', 'python3', ...pyenv];
  return candidates.find(isNewEnough);
}

/** Under root, sandboxes run as other users, who cannot read a Python in root's home: they get a copy of it. */
function readableForAll(python, copy) {
  const read = 'import sys; print(sys.base_prefix)';
  const home = spawnSync(python, ['-c', read], { encoding: 'utf8' }).stdout.trim();
  const parents = home.split(path.sep).map((_, index, names) => names.slice(0, index + 1).join(path.sep));
  if (parents.every((parent) => (statSync(parent || path.sep).mode & 0o001) !== 0)) {
    return python;
  }
  cpSync(home, copy, { recursive: true, verbatimSymlinks: true });
  process.env['LD_LIBRARY_PATH'] = path.join(copy, 'lib');
  return path.join(copy, 'bin', 'python3');
}

/** @returns the environment's Python; undefined when it could not be created, after printing why */
function prepare(folder) {
  const environment = process.env['STOCK_VENV'] ?? path.join(folder, 'venv');
  const python = path.join(environment, 'bin', 'python');
  const copy = `${environment}-python`;
  if (existsSync(copy)) {
    process.env['LD_LIBRARY_PATH'] = path.join(copy, 'lib');
  }
  if (!existsSync(python)) {
    const base = findPython();
    if (base === undefined) {
      say('The stock agent server needs Python 3.12 or newer, and there is none: set PYTHON.');
      return undefined;
    }
    say(`making a virtual environment with ${base}`);
    if (!succeeds(readableForAll(base, copy), ['-m', 'venv', environment])) {
      say('A virtual environment could not be made.');
      return undefined;
    }
  }
  if (spawnSync(python, ['-c', 'import openhands.agent_server'], { stdio: 'ignore' }).status !== 0) {
    say(`installing ${PACKAGES.join(' ')}, which takes a while`);
    if (!succeeds(python, ['-m', 'pip', 'install', '--quiet', ...PACKAGES])) {
      say('The stock agent server could not be installed.');
      return undefined;
    }
  }
  return python;
}

const { image, outside } = COMMAND_LINES['scripts/test-stock.mjs'].parse().opts();
const folder = mkdtempSync(path.join(tmpdir(), 'slipway-stock-'));
// Under root, sandboxes run as other users, who need access to this folder.
chmodSync(folder, 0o755);
try {
  const where = image !== undefined ? 'kubernetes' : outside ? 'outside' : 'process';
  const what = image ?? prepare(folder);
  if (what === undefined) {
    say('NOT TRIED: nothing is known about the stock agent server from this run.');
    process.exitCode = CANNOT;
  } else {
    const program = path.join(root, 'scripts', 'run-typescript.mjs');
    const journey = path.join(root, 'packages/agent-server/test/stock/journey.ts');
    const args = ['--disable-warning=ExperimentalWarning', program, journey, where, what, folder];
    process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit', cwd: root }).status ?? 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
