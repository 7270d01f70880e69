// The documentation as a site: npm run docs serves it, npm run docs -- build makes docs/.vitepress/dist.
// What it needs is as large as half of the service's own packages, so it is installed with the first call only.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

const folder = fileURLToPath(new URL('../docs/.vitepress/', import.meta.url));
const at = (name) => path.join(folder, name);
const [command, options] = COMMAND_LINES['scripts/docs.mjs'].parse().processedArgs;

if (isStale('node_modules/.package-lock.json', 'package-lock.json')) {
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
}
run(process.execPath, [
  at('node_modules/vitepress/bin/vitepress.js'),
  command,
  path.dirname(folder),
  ...options,
]);

function isStale(made, source) {
  return !existsSync(at(made)) || statSync(at(made)).mtimeMs < statSync(at(source)).mtimeMs;
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: folder, stdio: 'inherit' });
  if (error) {
    throw error;
  }
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}
