// Which small errors the tests notice: npm run test:mutants -- --seed 13 --count 200 --output FILE [--only EARLIER-FILE]
// Errors are made in the sources of this tree, one at a time, and taken back: work on a copy of it meanwhile.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { COMMAND_LINES } from './lib/command-lines.ts';
import { chooseMutants, mutated } from './lib/mutants.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const at = (file) => path.join(ROOT, file);

const hostTests = (name) => [
  'git-providers/src/',
  'test/git-providers/',
  'test/follow/.*hosts',
  'test/field/.*git-hosts',
  `git-providers/test/${name}[.-]`,
];
/** Tests of the agent server, wherever they are. */
const agentTests = (names) =>
  `(?:test/agent-server|test/field|test/contracts|packages/agent-server/test)/(?:.*/)?(?:${names})[^/]*$`;
/** Folders in which errors are made, and the tests (path patterns of Jest) that own the behaviour. */
const FOLDERS = [
  { folder: 'src/suggested-tasks', tests: ['src/suggested-tasks/', 'test/suggested-tasks/'] },
  { folder: 'src/follow', tests: ['src/follow/', 'test/follow/'] },
  ...['src/settings', ...['models', 'settings', 'tool-servers'].map((name) => `packages/${name}/src`)].map(
    (folder) => ({
      folder,
      tests: ['src/settings/', '(?:models|settings|tool-servers)/src/', 'test/settings/'],
    }),
  ),
  {
    folder: 'packages/egress-rules/src',
    tests: ['egress-rules/src/', 'test/settings/.*secrets', 'test/sandboxes/.*(?:egress|outside)'],
  },
  ...['src/git-providers', 'packages/git-providers/src'].map((folder) => ({
    folder,
    tests: ['src/git-providers/', ...hostTests('gitlab'), 'test/settings/.*(?:secrets|tokens)'],
  })),
  ...['github', 'gitlab', 'bitbucket', 'bitbucket-data-center', 'enterprise-sso'].map((name) => ({
    folder: `packages/git-providers/src/${name}`,
    tests: hostTests(name),
  })),
  { folder: 'src/v1/sandboxes/lifecycle', tests: ['src/v1/sandboxes/lifecycle/', 'test/sandboxes/'] },
  { folder: 'src/v1/events/store', tests: ['src/v1/events/', 'test/events/'] },
  {
    folder: 'packages/agent-server/src/engine/acp',
    tests: ['src/engine/acp/', agentTests('acp|agent-engine')],
    startsProcesses: true,
  },
  {
    folder: 'packages/agent-server/src/engine',
    tests: [
      'src/engine/(?!acp/)',
      agentTests(
        'native|agent-engine|calls-in-text|images|models|odd-|offered-tools|provider-data|refusals|responses|secrets[.]',
      ),
    ],
  },
].toSorted((a, b) => b.folder.length - a.folder.length);
const folderOf = (file) => FOLDERS.find(({ folder }) => file.startsWith(`${folder}/`));

const { scripts } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
/** How the tests of a folder are run: first what needs no database. */
const STEPS = [
  ['test', '--', '--selectProjects', 'unit', 'agent-server'],
  ['test', '--', '--selectProjects', 'http'],
];
/** After the name of the script and `--`. */
const OPTIONS = ['--bail=1', '--colors=false', '--maxWorkers=2', '--passWithNoTests'];
const SYSTEM = scripts['test:system'] ? ['test:system', '--'] : ['test', '--', '--selectProjects', 'system'];

/** A test that waits for what an error prevents, or an error that never ends. */
const TIMEOUT = { leastSeconds: 120, timesTheUsual: 3 };

const values = COMMAND_LINES['scripts/mutants.mjs'].parse().opts();
const folders = [...new Set(FOLDERS.map(({ folder }) => folder))];
if (
  execFileSync('git', ['status', '--porcelain', '--', ...folders], { cwd: ROOT, encoding: 'utf8' }) !== ''
) {
  throw new Error('The sources differ from the last commit: commit that first.');
}
const mutants = values.only
  ? noticedBefore(values.only)
  : chooseMutants(
      ROOT,
      Map.groupBy(sourcesIn(folders), (file) => folderOf(file).folder),
      values,
    );
// A run that was stopped goes on where it was.
const results = existsSync(values.output) ? resultsIn(values.output) : [];
if (
  results.some(({ file, offset }, index) => mutants[index]?.file !== file || mutants[index].offset !== offset)
) {
  throw new Error(`${values.output} is about other errors: name another file.`);
}
let takeBack = () => {};
let child;
let isStopped = false;
process.on('exit', () => takeBack());
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    isStopped = true;
    if (child) {
      end(child);
    }
  });
}
await import('./lib/typescript-loader.cjs');
const { startTestServer } = await import('../test/support/test-server.ts');
const isOwnServer = process.env.TEST_DATABASE_URL === undefined;
const server = await startTestServer();
const database = process.env.SLIPWAY_TEST_SERVER;
const usual = new Map();
try {
  for (const mutant of mutants.slice(results.length)) {
    const result = await tryMutant(mutant);
    if (isStopped) {
      break;
    }
    results.push(result);
    report(result);
  }
} finally {
  await server.stop();
}
summarize();
process.exitCode = isStopped || (values.only && results.some(({ status }) => !isNoticed(status))) ? 1 : 0;

async function tryMutant(mutant) {
  const file = at(mutant.file);
  const text = readFileSync(file, 'utf8');
  const wrong = mutated(text, mutant);
  if (wrong === undefined) {
    return { ...mutant, status: 'gone', seconds: 0 };
  }
  const group = folderOf(mutant.file);
  if (!usual.has(group)) {
    usual.set(group, await usualSeconds(group));
  }
  const { atime, mtime } = statSync(file);
  const write = (content) => {
    writeFileSync(file, content);
    // The same time, since the system tests would build a program that is newer, and types do not matter here.
    utimesSync(file, atime, mtime);
  };
  takeBack = () => write(text);
  try {
    write(wrong);
    return { ...mutant, ...(await runTests(group, usual.get(group))) };
  } finally {
    takeBack();
    takeBack = () => {};
  }
}

/** How long the tests of a folder take while nothing is wrong; a second time if the first one is out of luck. */
async function usualSeconds(group) {
  for (const isLast of [false, true]) {
    const { status, seconds, count, by } = await runTests(group, Infinity);
    process.stdout.write(`${group.folder}: ${count} tests take ${seconds} s\n`);
    if ((status === 'survived' && count > 0) || isStopped) {
      return seconds;
    }
    if (isLast) {
      throw new Error(`The tests of ${group.folder} do not pass without any error in it: ${by}`);
    }
  }
}

async function runTests({ tests, startsProcesses }, usually) {
  const started = performance.now();
  const limit = 1000 * Math.max(TIMEOUT.leastSeconds, TIMEOUT.timesTheUsual * usually);
  const result = { status: 'survived', count: 0 };
  for (const step of startsProcesses ? [...STEPS, SYSTEM] : STEPS) {
    if (result.status === 'survived' && !isStopped) {
      const left = started + limit - performance.now();
      const { status, count, by } = await runStep([...step, '--', ...tests], left);
      Object.assign(result, { status, count: result.count + count, by });
    }
  }
  if (isOwnServer) {
    await removeDatabases();
  }
  return { ...result, seconds: Math.round((performance.now() - started) / 1000) };
}

async function runStep(args, milliseconds) {
  child = spawn('npm', ['run', '--silent', ...args.toSpliced(2, 0, ...OPTIONS)], {
    cwd: ROOT,
    detached: true,
    env: { ...process.env, TEST_DATABASE_URL: database },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let printed = '';
  child.stderr.on('data', (data) => (printed += data));
  let isLate = false;
  const late = () => {
    isLate = true;
    end(child);
  };
  const timer = Number.isFinite(milliseconds) ? setTimeout(late, milliseconds) : undefined;
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  clearTimeout(timer);
  const [, count = 0] = /^Tests: .*?(\d+) total/m.exec(printed) ?? [];
  const status = isLate ? 'timed out' : code === 0 ? 'survived' : 'killed';
  if (status !== 'killed' || isStopped) {
    return { status, count: Number(count) };
  }
  const [, file] = /^FAIL \S+ (\S+)/m.exec(printed) ?? [];
  const [, name] = /^ +● (.*)$/m.exec(printed) ?? [];
  if (file === undefined) {
    throw new Error(`The tests could not be run: ${printed.slice(-2000)}`);
  }
  return { status, count: Number(count), by: `${file}: ${name}` };
}

function end(running) {
  try {
    process.kill(-running.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') {
      throw error;
    }
  }
}

/** Tests that are stopped by the first failure leave theirs behind. */
async function removeDatabases() {
  const client = new pg.Client({ connectionString: database });
  await client.connect();
  try {
    const own = "datname like 'slipway\\_te%' and datname <> $1";
    const { rows } = await client.query(`select datname from pg_database where ${own}`, [
      process.env.SLIPWAY_TEST_TEMPLATE,
    ]);
    for (const { datname } of rows) {
      await client.query(`drop database if exists ${datname} with (force)`);
    }
  } finally {
    await client.end();
  }
}

function sourcesIn(names) {
  return globSync(
    names.map((name) => `${name}/**/*.ts`),
    { cwd: ROOT },
  )
    .filter((file) => !file.endsWith('.spec.ts'))
    .toSorted();
}

function noticedBefore(earlier) {
  return resultsIn(earlier)
    .filter(({ status }) => isNoticed(status))
    .map(({ status: was, by: wasBy, ...mutant }) => ({ ...mutant, was, wasBy }));
}

function resultsIn(file) {
  return JSON.parse(readFileSync(file, 'utf8')).mutants;
}

function isNoticed(status) {
  return status === 'killed' || status === 'timed out';
}

/** Written after each one, so that nothing is lost when the run is stopped. */
function report({ file, description, status, seconds, by = '' }) {
  const number = `${results.length}/${mutants.length}`;
  process.stdout.write(`${number} ${status} in ${seconds} s: ${file} ${description}  ${by}\n`);
  mkdirSync(path.dirname(path.resolve(values.output)), { recursive: true });
  const written = { seed: values.seed, chosen: mutants.length, mutants: results };
  writeFileSync(values.output, `${JSON.stringify(written, null, 2)}\n`);
}

function summarize() {
  const byFolder = Map.groupBy(results, ({ file }) => folderOf(file).folder);
  for (const [folder, all] of [...byFolder, ['all', results]]) {
    const counts = Map.groupBy(all, ({ status }) => status);
    const texts = [...counts].map(([status, some]) => `${some.length} ${status}`).toSorted();
    process.stdout.write(`${folder.padEnd(42)}${`${all.length}`.padStart(5)}: ${texts.join(', ')}\n`);
  }
}
