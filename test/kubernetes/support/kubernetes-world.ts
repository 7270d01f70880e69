import path from 'node:path';
import type { ServiceProcess } from '../../support/service-process.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import { type ClusterAccess, TestCluster } from './test-cluster.js';

/** A journey whose sandboxes are pods: the built service on this machine, in a namespace of its own of the cluster. */
export class KubernetesWorld {
  private constructor(
    readonly cluster: TestCluster,
    readonly journey: JourneyWorld,
    readonly access: ClusterAccess,
  ) {}

  static async open(): Promise<KubernetesWorld> {
    const cluster = await TestCluster.open();
    const journey = await JourneyWorld.open({ host: cluster.hostAddress });
    try {
      return new KubernetesWorld(cluster, journey, await cluster.access(path.dirname(journey.dataDir)));
    } catch (error) {
      await journey.close();
      await cluster.close();
      throw error;
    }
  }

  get namespace(): string {
    return this.access.namespace;
  }

  /** Starts a replica, on the same database and namespace each time. */
  async start(environment: Record<string, string> = {}): Promise<ServiceProcess> {
    return this.journey.start({
      ...this.cluster.variables(this.access),
      ...(await this.cluster.variablesOfProcess()),
      ...environment,
    });
  }

  /** Names of the pods of a sandbox, or of all. */
  async pods(sandboxId?: string): Promise<string[]> {
    const selector = sandboxId === undefined ? undefined : `slipway.sandbox-id=${sandboxId}`;
    const pods = await this.cluster.pods(this.namespace, selector);
    return pods.map(({ metadata }) => metadata?.name ?? '');
  }

  /** @param secretsMayShow see {@link JourneyWorld.close} */
  async close({ secretsMayShow = false } = {}): Promise<void> {
    try {
      await this.journey.close({ secretsMayShow });
    } finally {
      await this.cluster.close();
    }
  }
}
