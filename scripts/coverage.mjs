// Which lines and branches the tests reach, folder by folder:
// npm run test:coverage -- [--output FILE] [--compare EARLIER-FILE] [--folder FOLDER] [-- ARGUMENTS OF JEST]
// What is counted in FOLDER stays there, and a later run adds to it, such as one of the tests that failed.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import coverage from 'istanbul-lib-coverage';
import { COMMAND_LINES } from './lib/command-lines.ts';
import { COUNTED, uncovered } from './lib/coverage.cjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Deadlines and races reach a branch in one run and miss it in the next. */
const TOLERATED_POINTS = 0.3;

const commandLine = COMMAND_LINES['scripts/coverage.mjs'].parse();
const [positionals] = commandLine.processedArgs;
const values = commandLine.opts();
const earlier = values.compare && JSON.parse(readFileSync(values.compare, 'utf8'));
const folder = path.resolve(values.folder ?? mkdtempSync(path.join(tmpdir(), 'slipway-coverage-')));
mkdirSync(folder, { recursive: true });
try {
  const status = runTests();
  const rooms = summarize(merge(folder));
  mkdirSync(path.dirname(path.resolve(values.output)), { recursive: true });
  writeFileSync(values.output, `${JSON.stringify(rooms, null, 2)}\n`);
  print(rooms);
  if (status !== 0) {
    process.stderr.write('Some tests failed, so they may have reached less than usual.\n');
  }
  process.exitCode = earlier && hasFallen(earlier, rooms) ? 1 : status;
} finally {
  if (values.folder === undefined) {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All of them, or those that the arguments name: what starts processes may have a command of its own. */
function runTests() {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  const codes = ['test', 'test:system']
    .filter((name) => scripts[name] !== undefined)
    .map((name) =>
      spawnSync('npm', ['run', name, '--', '--passWithNoTests', ...positionals], {
        cwd: ROOT,
        stdio: 'inherit',
        env: { ...process.env, SLIPWAY_COVERAGE: folder },
      }),
    );
  return codes.some(({ status }) => status !== 0) ? 1 : 0;
}

/** What all processes counted, and zeros for the sources that none of them has loaded. */
function merge(written) {
  const map = coverage.createCoverageMap();
  for (const name of readdirSync(written)) {
    map.merge(JSON.parse(readFileSync(path.join(written, name), 'utf8')));
  }
  const loaded = new Set(map.files());
  for (const name of globSync('{src,packages/*/src}/**/*.ts', { cwd: ROOT }).filter((each) =>
    COUNTED.test(each),
  )) {
    if (!loaded.has(name)) {
      const file = path.join(ROOT, name);
      map.addFileCoverage(uncovered(readFileSync(file, 'utf8'), file));
    }
  }
  return map;
}

function summarize(map) {
  const files = Map.groupBy(map.files().toSorted(), roomOf);
  const entries = [...files].map(([room, names]) => [room, summaryOf(map, names)]);
  return Object.fromEntries([...entries, ['all', summaryOf(map, map.files())]]);
}

/** The folder of a feature: `src/settings`, `src/v1/sandboxes`, `packages/common`. */
function roomOf(file) {
  const folders = path.posix.dirname(file).split('/');
  return folders.slice(0, folders[1] === 'v1' ? 3 : 2).join('/');
}

function summaryOf(map, names) {
  const summary = coverage.createCoverageSummary();
  names.forEach((name) => summary.merge(map.fileCoverageFor(name).toSummary()));
  const { lines, branches } = summary;
  return { lines: shareOf(lines), branches: shareOf(branches) };
}

function shareOf({ covered, total }) {
  return { covered, total, percent: total === 0 ? 100 : Math.round((10_000 * covered) / total) / 100 };
}

function print(rooms) {
  row('', 'lines', '', 'branches', '');
  for (const [room, { lines, branches }] of Object.entries(rooms)) {
    row(room, `${lines.percent} %`, `of ${lines.total}`, `${branches.percent} %`, `of ${branches.total}`);
  }
}

/** Prints what differs from an earlier run. */
function hasFallen(before, after) {
  const differences = Object.keys(before).flatMap((room) =>
    ['lines', 'branches'].map((what) => ({
      room,
      what,
      points: (after[room]?.[what].percent ?? 0) - before[room][what].percent,
    })),
  );
  process.stdout.write('\nDifferences in points:\n');
  for (const { room, what, points } of differences.filter((each) => each.points !== 0)) {
    row(room, what, points.toFixed(2), points < -TOLERATED_POINTS ? 'FELL' : '', '');
  }
  return differences.some(({ points }) => points < -TOLERATED_POINTS);
}

function row(room, ...cells) {
  process.stdout.write(`${room.padEnd(34)}${cells.map((cell) => cell.padStart(11)).join('')}\n`);
}
