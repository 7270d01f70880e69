import { randomUUID } from 'node:crypto';
import { CoreV1Api, CustomObjectsApi, KubeConfig } from '@kubernetes/client-node';

const GROUP = 'agents.x-k8s.io';
const VERSION = 'v1beta1';
export const SANDBOX_API = `${GROUP}/${VERSION}`;

/** A namespace of its own for a measurement, in the cluster of `KUBECONFIG`. */
export class BenchNamespace {
  readonly name = `slipway-bench-${randomUUID().slice(0, 8)}`;
  readonly core: CoreV1Api;
  private readonly objects: CustomObjectsApi;

  private constructor(config: KubeConfig) {
    this.objects = config.makeApiClient(CustomObjectsApi);
    this.core = config.makeApiClient(CoreV1Api);
  }

  static async create(): Promise<BenchNamespace> {
    const config = new KubeConfig();
    config.loadFromDefault();
    const namespace = new BenchNamespace(config);
    await namespace.core.createNamespace({ body: { metadata: { name: namespace.name } } });
    return namespace;
  }

  async createSandbox(body: object): Promise<void> {
    const target = { group: GROUP, version: VERSION, plural: 'sandboxes', namespace: this.name };
    await this.objects.createNamespacedCustomObject({ ...target, body });
  }

  async remove(): Promise<void> {
    await this.core.deleteNamespace({ name: this.name });
  }
}
