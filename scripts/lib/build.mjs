import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeOlder } from './leftovers.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const at = (...parts) => path.join(root, ...parts);

const entry = at('dist/service/main.js');
/** Node keeps the compiled form of what it loads here. */
export const compileCache = at('dist/.compile-cache');
const stamp = at('dist/.built');
const inputs = globSync(
  [
    'tsconfig.json',
    '{.,packages/*}/package.json',
    'packages/console/{index.html,vite.config.mjs}',
    'package-lock.json',
  ],
  { cwd: root },
).map((name) => at(name));
const sources = globSync('{.,packages/*}/src', { cwd: root }).map((name) => at(name));

/** Bundles the programs and the console; returns false when that fails, after printing why. */
export function build() {
  const startedAt = new Date();
  const previous = statSync(stamp, { throwIfNoEntry: false })?.mtime;
  rmSync(stamp, { force: true });
  rmSync(compileCache, { recursive: true, force: true });
  if (!existsSync(at('node_modules/rolldown'))) {
    process.stderr.write('What builds Slipway is not installed: run npm ci first\n');
    return false;
  }
  report('Building what users run (npm run dev is for changing it): the service and the agent server…');
  for (const script of ['scripts/bundle.mjs', 'scripts/code-cache.mjs']) {
    const made = spawnSync(process.execPath, [at(script)], {
      stdio: ['ignore', process.stderr.fd, 'inherit'],
    });
    if (made.status !== 0) {
      return false;
    }
  }
  if (!buildConsole()) {
    return false;
  }
  if (previous) {
    ['dist/service', 'dist/bundle', 'dist/egress-proxy'].forEach((bundles) =>
      removeOlder(at(bundles), previous),
    );
  }
  writeFileSync(stamp, '');
  // The stamp has the start time, so that files saved while it was built count as newer.
  utimesSync(stamp, startedAt, startedAt);
  report(`Built in ${Math.round((Date.now() - startedAt.getTime()) / 1000)} s`);
  return true;
}

/** Standard output belongs to the program that runs afterwards. */
function report(text) {
  process.stderr.write(`${new Date().toTimeString().slice(0, 8)} ${text}\n`);
}

/** The page at `/`, with its own tools, in place of an earlier one. */
function buildConsole() {
  if (!existsSync(at('packages/console/package.json'))) {
    return true;
  }
  report('Building: the console…');
  const { status } = spawnSync('npm', ['run', '--silent', 'build', '--workspace', '@slipway/console'], {
    cwd: root,
    stdio: ['ignore', process.stderr.fd, 'inherit'],
  });
  if (status !== 0) {
    return false;
  }
  rmSync(at('dist/console'), { recursive: true, force: true });
  cpSync(at('packages/console/dist'), at('dist/console'), { recursive: true });
  return true;
}

/**
 * Builds if something has changed since the last build; returns false when that fails. An image has no sources to
 * build.
 */
export function buildIfNeeded() {
  if (!existsSync(at('src')) || isUpToDate()) {
    return true;
  }
  return build();
}

/** Whether nothing has changed since the last build. */
export function isUpToDate() {
  if (!existsSync(stamp) || !existsSync(entry)) {
    return false;
  }
  const builtAt = statSync(stamp).mtimeMs;
  const isOlder = (file) => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) < builtAt;
  // Folders count too: removing or renaming a file changes only those.
  const folders = sources.flatMap((source) => [
    source,
    ...readdirSync(source, { recursive: true }).map((name) => path.join(source, name)),
  ]);
  return [...inputs, ...folders].every(isOlder);
}
