import { KubernetesHarness, PROMISES, describeInCluster } from './kubernetes.harness.js';
import { describeSandboxBackend } from '../sandbox-backend.contract.js';

// A file of its own, so that it runs beside the one of pods that are reached at their addresses: either takes minutes.
describeInCluster('a cluster whose pods are out of reach (npm run test:kubernetes)', () => {
  describeSandboxBackend(
    'kubernetes through the API server',
    () => KubernetesHarness.make({ reach: 'proxy' }),
    PROMISES,
  );
});
