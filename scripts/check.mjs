import { spawnSync } from 'node:child_process';

/** What CI runs, cheap gates first; stops at the first that fails. */
const STEPS = [
  'format:check',
  'lint',
  'check:house',
  'licenses',
  'typecheck',
  'build',
  'migrations:check',
  'openapi:check',
  'test',
];

for (const step of STEPS) {
  process.stdout.write(`\n== npm run ${step}\n`);
  const { status, error } = spawnSync('npm', ['run', '--silent', step], { stdio: 'inherit' });
  if (error) {
    throw error;
  }
  if (status !== 0) {
    process.stderr.write(`\nnpm run check: ${step} failed\n`);
    process.exitCode = 1;
    break;
  }
}
