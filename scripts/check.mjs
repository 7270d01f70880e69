import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import pLimit from 'p-limit';

/** What CI runs. Those of a group run side by side, the longest first; none of a group begins before the last is through. */
const GROUPS = [
  ['typecheck', 'build', 'format:check', 'lint', 'check:house', 'licenses'],
  ['migrations:check', 'openapi:check'],
];
/** Prints while it runs. */
const LAST = 'test';

for (const steps of GROUPS) {
  const limit = pLimit(availableParallelism());
  const results = await Promise.all(steps.map((step) => limit(() => run(step, 'pipe'))));
  if (results.includes(false)) {
    process.exit(1);
  }
}
if (!(await run(LAST, 'inherit'))) {
  process.exitCode = 1;
}

/** False when it fails, which has been said. */
async function run(step, output) {
  const begin = performance.now();
  if (output === 'inherit') {
    process.stdout.write(`\n== npm run ${step}\n`);
  }
  // One file for both, so that the lines stay in their order.
  const child = spawn('sh', ['-c', `npm run --silent ${step} 2>&1`], {
    stdio: ['inherit', output, 'inherit'],
  });
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const printed = child.stdout === null ? '' : await text(child.stdout);
  const status = await ended;
  const seconds = ((performance.now() - begin) / 1000).toFixed(0);
  if (output === 'pipe') {
    process.stdout.write(`\n== npm run ${step} (${seconds} s)\n${printed}`);
  }
  if (status !== 0) {
    process.stderr.write(`\nnpm run check: ${step} failed\n`);
  }
  return status === 0;
}
