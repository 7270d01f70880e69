import { KubernetesHarness, PROMISES, describeInCluster } from './kubernetes.harness.js';
import { describeSandboxBackend } from '../sandbox-backend.contract.js';

describeInCluster('a cluster (npm run test:kubernetes)', () => {
  describeSandboxBackend('kubernetes', () => KubernetesHarness.make(), PROMISES);
});
