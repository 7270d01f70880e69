import { spawnSync } from 'node:child_process';
import { processHarness } from './process.sandbox-backend.harness.js';
import { describeSandboxBackend } from '../sandbox-backend.contract.js';

/** Where bubblewrap is installed but unusable, the suite fails; where it is not installed, the suite does without. */
const HAS_BUBBLEWRAP = spawnSync('bwrap', ['--version']).status === 0;

describeSandboxBackend('process, not isolated', async () => await processHarness('none'), {
  isolated: false,
  samePaths: false,
});

if (HAS_BUBBLEWRAP) {
  describeSandboxBackend('process, in bubblewrap', async () => await processHarness('bwrap'), {
    isolated: true,
    samePaths: true,
  });
}
