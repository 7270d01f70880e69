// Runs the service from its sources, and starts it again after every change: npm run dev. It holds a connection to the
// embedded database, which so outlives restarts. Types are checked beside it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { watch } from 'chokidar';
import 'reflect-metadata';
import { isUpToDate } from './lib/build.mjs';
import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/dev.mjs'].parse();

const root = fileURLToPath(new URL('..', import.meta.url));
/** Editors save in several steps. */
const SETTLE_MS = 50;
/** What runs in sandboxes or beside them is bundled; the service loads its sources. */
const BUNDLED = ['agent-protocol', 'agent-server', 'common', 'egress-proxy'].map(
  (name) => `packages/${name}/src`,
);
/** The console has a server of its own. */
const FOLDERS = globSync('{src,packages/*/src}', { cwd: root, exclude: ['packages/console'] });
const RECORD = 'node_modules/.cache/slipway-typescript/dev.tsbuildinfo';
const TYPE_CHECK = [
  '--noEmit',
  '--incremental',
  '--tsBuildInfoFile',
  RECORD,
  '--watch',
  '--preserveWatchOutput',
];

await import('./lib/typescript-loader.cjs');
const [{ loadConfig }, { openDatabase }, { reportStartFailure }] = await Promise.all([
  import('../src/config/load-config.ts'),
  import('../src/database/open-database.ts'),
  import('../src/program/process-end.ts'),
]);

let database;
try {
  database = await openDatabase(loadConfig());
} catch (error) {
  reportStartFailure(error);
}

const changed = new Set();
let settling;
let isEnding = false;
let service;

process.stderr.write('From the sources, and again after every change; npm start runs what users have\n');
if (!isUpToDate()) {
  await bundleAgentServer();
}

let work = Promise.resolve();
// Node's own recursive watch loses a file that is replaced, as editors and Git do.
const watcher = watch(FOLDERS, { cwd: root, ignoreInitial: true }).on('all', (_event, file) => {
  if (/(?<!\.spec)\.(ts|json)$/.test(file)) {
    changed.add(FOLDERS.find((folder) => file.startsWith(`${folder}${path.sep}`)));
    clearTimeout(settling);
    settling = setTimeout(() => {
      work = work.then(restart);
    }, SETTLE_MS);
  }
});
// A file that is saved before the watch has seen it once has not changed.
await once(watcher, 'ready');
start();
const checker = run(['node_modules/typescript/bin/tsc', ...TYPE_CHECK], { cwd: root });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => void end());
}

async function restart() {
  const folders = [...changed];
  changed.clear();
  const isBundled = folders.some((folder) => BUNDLED.includes(folder));
  if (folders.length === 0 || isEnding || (isBundled && !(await bundleAgentServer()))) {
    return;
  }
  await stop();
  start();
}

function start() {
  service = run([path.join(root, 'scripts/lib/run-source.mjs')]);
}

async function stop() {
  if (service.exitCode === null && service.signalCode === null) {
    service.kill('SIGTERM');
    await once(service, 'exit');
  }
}

async function end() {
  if (isEnding) {
    return;
  }
  isEnding = true;
  checker.kill();
  await work;
  await stop();
  await database.close();
  process.exit();
}

/** Sandboxes run a bundle; returns false when it cannot be made, after printing why. */
async function bundleAgentServer() {
  const [status] = await once(run(['scripts/bundle.mjs', '--dev'], { cwd: root }), 'exit');
  return status === 0;
}

function run(args, options = {}) {
  return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    ...options,
  });
}
