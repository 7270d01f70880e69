import { describe } from '@jest/globals';
import { KUBECONFIG, KubernetesHarness, PROMISES } from './kubernetes.harness.js';
import { describeSandboxBackend } from '../sandbox-backend.contract.js';

const describeInCluster = KUBECONFIG === '' ? describe.skip : describe;

describeInCluster('a cluster (npm run test:kubernetes)', () => {
  describeSandboxBackend('kubernetes', () => KubernetesHarness.make(), PROMISES);
});
