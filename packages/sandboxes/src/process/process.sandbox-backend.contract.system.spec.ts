import { ISOLATIONS, processHarness } from './process.sandbox-backend.harness.js';
import { describeSandboxBackend } from '../sandbox-backend.contract.js';

for (const isolation of ISOLATIONS) {
  const isolated = isolation === 'bwrap';
  describeSandboxBackend(`process, isolation ${isolation}`, async () => await processHarness(isolation), {
    isolated,
    samePaths: isolated,
  });
}
