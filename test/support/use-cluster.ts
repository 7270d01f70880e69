import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach } from '@jest/globals';
import { ApiServer } from '../../packages/sandboxes/src/kubernetes/api-server.js';
import { FakeKubernetes } from '../fakes/fake-kubernetes.js';
import { useFolder } from './use-folder.js';

/** A cluster, the file that says where it is, and a client of it. */
export interface TestCluster {
  cluster: FakeKubernetes;
  port: number;
  kubeconfig: string;
  api: ApiServer;
}

/** A cluster of its own for each test. */
export function useCluster(): TestCluster {
  const folder = useFolder();
  const made = {} as TestCluster;
  beforeEach(async () => {
    const cluster = new FakeKubernetes();
    const port = await cluster.listen();
    const kubeconfig = path.join(folder.path, 'config');
    writeFileSync(kubeconfig, FakeKubernetes.kubeconfig(port));
    Object.assign(made, { cluster, port, kubeconfig, api: new ApiServer(kubeconfig) });
  });
  afterEach(async () => {
    await made.api.close();
    await made.cluster.close();
  });
  return made;
}
