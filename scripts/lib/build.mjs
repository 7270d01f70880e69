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
import { removeOlder, removeOrphans } from './leftovers.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const at = (...parts) => path.join(root, ...parts);

const entry = at('dist/service/main.js');
/** Where Node keeps the compiled form of what it loads. */
export const compileCache = at('dist/.compile-cache');
const stamp = at('dist/.built');
const inputs = globSync(
  [
    'tsconfig.json',
    '{.,packages/*}/{tsconfig.build,package}.json',
    'packages/console/{index.html,vite.config.mjs}',
    'package-lock.json',
  ],
  { cwd: root },
).map((name) => at(name));
const sources = globSync('{.,packages/*}/src', { cwd: root }).map((name) => at(name));
/** Those of the compiler; the console has a bundler of its own. */
const compiled = sources.filter((source) => existsSync(path.join(source, '../tsconfig.build.json')));

/**
 * Compiles the sources with the local TypeScript and bundles the programs; returns false when that fails, after
 * printing why.
 */
export function build() {
  const startedAt = new Date();
  const previous = statSync(stamp, { throwIfNoEntry: false })?.mtime;
  if (!existsSync(entry)) {
    // Otherwise TypeScript would trust its record of the last build and write only files that have changed since.
    rmSync(at('dist/.tsbuildinfo'), { force: true });
  }
  rmSync(stamp, { force: true });
  rmSync(compileCache, { recursive: true, force: true });
  const compiler = at('node_modules/typescript/bin/tsc');
  if (!existsSync(compiler)) {
    process.stderr.write('TypeScript is not installed: run npm ci first\n');
    return false;
  }
  report('Building: compiling…');
  const { status } = spawnSync(process.execPath, [compiler, '--build', at('tsconfig.build.json')], {
    stdio: ['ignore', process.stderr.fd, 'inherit'],
  });
  if (status !== 0) {
    return false;
  }
  report('Building: bundling…');
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
  compiled.forEach((source) => removeOrphans(path.join(source, '../dist'), source));
  if (previous) {
    ['dist/service', 'dist/bundle'].forEach((bundles) => removeOlder(at(bundles), previous));
  }
  writeFileSync(stamp, '');
  // The stamp has the start time, so that files saved while the compiler ran count as newer.
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
