import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import pLimit from 'p-limit';
import { COMMAND_LINES } from './lib/command-lines.ts';

/**
 * The steps of CI. Steps of a group run in parallel, the longest first; a group begins when the previous one has
 * succeeded.
 */
const GROUPS = [
  ['typecheck', 'build', 'format:check', 'lint', 'check:house', 'licenses'],
  ['migrations:check', 'openapi:check'],
];
/** The last step, which prints while it runs, and which --static leaves out. */
const LAST = 'test';

const values = COMMAND_LINES['scripts/check.mjs'].parse().opts();

for (const steps of GROUPS) {
  const limit = pLimit(availableParallelism());
  const results = await Promise.all(steps.map((step) => limit(() => run(step, 'pipe'))));
  if (results.includes(false)) {
    process.exit(1);
  }
}
if (!values.static && !(await run(LAST, 'inherit'))) {
  process.exitCode = 1;
}

/** Returns false when the step fails, after printing that. */
async function run(step, output) {
  const begin = performance.now();
  if (output === 'inherit') {
    process.stdout.write(`\n== npm run ${step}\n`);
  }
  // Both outputs go to one file, so that the lines keep their order.
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
