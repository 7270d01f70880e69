import { describe, it } from '@jest/globals';
import { KUBECONFIG, KubernetesHarness } from './kubernetes.harness.js';
import { describeSandboxBackend } from './sandbox-backend.contract.js';

const PROMISES = { isolated: true, samePaths: true, timeoutMs: 120_000 };

if (KUBECONFIG === '') {
  describe('sandbox backend: kubernetes', () => {
    it.todo('needs a cluster: npm run test:kubernetes says which');
  });
} else {
  describeSandboxBackend('kubernetes', () => KubernetesHarness.make(), PROMISES);
  describeSandboxBackend(
    'kubernetes through the API server',
    () => KubernetesHarness.make({ reach: 'proxy' }),
    PROMISES,
  );
}
