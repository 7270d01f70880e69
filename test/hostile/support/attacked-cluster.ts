import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { V1Pod } from '@kubernetes/client-node';
import { missingForCluster, TestCluster } from '../../kubernetes/support/test-cluster.js';
import type { BackendSetup } from './backends.js';

const KUBECONFIG = process.env['KUBECONFIG'] ?? '';
/** Whether the network of the cluster enforces NetworkPolicies: nothing in a cluster says so. */
export const clusterEnforcesPolicies = process.env['SLIPWAY_TEST_POLICIES'] === 'enforced';

/** Why pods cannot be attacked; null: they can. */
export async function missingForPods(): Promise<string | null> {
  return await missingForCluster(KUBECONFIG);
}

/** A namespace of its own, and a service that has the rights of the Role of `deploy/kubernetes` in it, and no others. */
export async function openCluster(): Promise<BackendSetup> {
  const cluster = await TestCluster.open(KUBECONFIG);
  const folder = await mkdtemp(path.join(tmpdir(), 'hostile-'));
  const close = async (): Promise<void> => {
    await cluster.close();
    await rm(folder, { recursive: true, maxRetries: 10 });
  };
  try {
    return {
      environment: cluster.variables(await cluster.access(folder)),
      host: cluster.hostAddress,
      ofProcess: () => cluster.variablesOfProcess(),
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
