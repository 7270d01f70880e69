import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { V1Pod } from '@kubernetes/client-node';
import { errorMessage } from '../../../src/common/errors/error-message.js';
import { freePort } from '../../../src/v1/sandboxes/backends/process/port-reservations.js';
import { AGENT_IMAGE, TestCluster } from '../../kubernetes/support/test-cluster.js';
import type { BackendSetup } from './backends.js';

const KUBECONFIG = process.env['KUBECONFIG'] ?? '';
/** Whether the network of the cluster enforces NetworkPolicies: nothing in a cluster says so. */
export const clusterEnforcesPolicies = process.env['SLIPWAY_TEST_POLICIES'] === 'enforced';

/** Why pods cannot be attacked; null: they can. */
export async function missingForCluster(): Promise<string | null> {
  if (KUBECONFIG === '') {
    return 'KUBECONFIG names no cluster (npm run test:kubernetes says what it needs)';
  }
  try {
    await TestCluster.open(KUBECONFIG);
    return null;
  } catch (error) {
    return `the cluster of KUBECONFIG is of no use: ${errorMessage(error)}`;
  }
}

/** A namespace of its own, and a service that has the rights of the Role of `deploy/kubernetes` in it, and no others. */
export async function openCluster(): Promise<BackendSetup> {
  const cluster = await TestCluster.open(KUBECONFIG);
  const folder = await mkdtemp(path.join(tmpdir(), 'hostile-'));
  const close = async (): Promise<void> => {
    await cluster.close();
    await rm(folder, { recursive: true });
  };
  try {
    const { namespace, kubeconfig } = await cluster.access(folder);
    return {
      environment: {
        SANDBOX_BACKEND: 'kubernetes',
        KUBECONFIG: kubeconfig,
        SANDBOX_NAMESPACE: namespace,
        SANDBOX_IMAGE: AGENT_IMAGE,
        SANDBOX_VOLUME_SIZE: '64Mi',
        SANDBOX_REACH: cluster.reachesPods ? 'pod' : 'proxy',
        // Pods call the service at an address of this machine.
        HOST: '0.0.0.0',
      },
      host: cluster.hostAddress,
      ofProcess: async () => {
        const port = String(await freePort('127.0.0.1'));
        return { PORT: port, SANDBOX_CALLBACK_URL: `http://${cluster.hostAddress}:${port}` };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The pod of a sandbox, as the cluster has it. */
export async function podOfSandbox(instanceId: string, sandboxId: string): Promise<V1Pod | null> {
  const cluster = await TestCluster.open(KUBECONFIG);
  const { items } = await cluster.core.listPodForAllNamespaces({
    labelSelector: `slipway.instance=${instanceId},slipway.sandbox-id=${sandboxId}`,
  });
  return items[0] ?? null;
}
