// Runs Jest: npm test [-- --changed] [-- any argument of Jest's], and npm run test:system.
// --changed   only what the change touches: all since this branch left main, or since the last commit
import { spawnSync } from 'node:child_process';
import { run } from 'jest';

const [, , ...given] = process.argv;
await run(given.flatMap((argument) => (argument === '--changed' ? sinceArguments() : [argument])));

function sinceArguments() {
  const main = ['origin/main', 'main'].find((name) => git('rev-parse', '--verify', '--quiet', name) !== null);
  const head = git('rev-parse', 'HEAD');
  if (head === null) {
    process.stderr.write('--changed compares with commits, and this is no clone of the repository\n');
    process.exit(2);
  }
  const base = main === undefined ? head : (git('merge-base', 'HEAD', main) ?? head);
  const isUnchanged = base === head && git('status', '--porcelain') === '';
  return ['--changedSince', isUnchanged ? 'HEAD~1' : base, '--passWithNoTests'];
}

/** What it prints; null where it fails. */
function git(...args) {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
