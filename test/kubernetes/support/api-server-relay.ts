import { connect, createServer, type Server } from 'node:net';
import { DiscoveryV1Api } from '@kubernetes/client-node';
import { HeldSockets, joinSockets } from '../../support/held-sockets.js';
import { startListening, stopServer } from '../../support/start-listening.js';
import type { TestCluster } from './test-cluster.js';

/** A name in the certificate of every API server. */
const NAME = 'kubernetes.default.svc';

/**
 * Where pods reach the API server in a cluster without a network for Services: an address of this machine that leads to it.
 */
export class ApiServerRelay {
  private constructor(
    private readonly server: Server,
    private readonly sockets: HeldSockets,
    private readonly host: string,
    private readonly port: number,
  ) {}

  /** Null where the cluster has its Service for the API server. */
  static async startIfNeeded(cluster: TestCluster): Promise<ApiServerRelay | null> {
    const discovery = cluster.config.makeApiClient(DiscoveryV1Api);
    const labelSelector = 'kubernetes.io/service-name=kubernetes';
    const { items } = await discovery.listNamespacedEndpointSlice({ namespace: 'default', labelSelector });
    if (items.some(({ endpoints }) => (endpoints ?? []).length > 0)) {
      return null;
    }
    const target = new URL(cluster.config.getCurrentCluster()?.server ?? '');
    const sockets = new HeldSockets();
    const server = createServer((client) => {
      const upstream = connect(Number(target.port || 443), target.hostname);
      sockets.hold(client);
      sockets.hold(upstream);
      joinSockets(client, upstream);
    });
    const host = cluster.hostAddress;
    return new ApiServerRelay(server, sockets, host, await startListening(server, 0, host));
  }

  /** Variables by which programs in pods find the API server. */
  get environment(): Record<string, string> {
    return { KUBERNETES_SERVICE_HOST: NAME, KUBERNETES_SERVICE_PORT: String(this.port) };
  }

  /** A change of a Deployment that has its pods find the name (JSON patch). */
  get patch(): object {
    const value = [{ ip: this.host, hostnames: [NAME] }];
    return { op: 'add', path: '/spec/template/spec/hostAliases', value };
  }

  async close(): Promise<void> {
    this.sockets.cut();
    await stopServer(this.server);
  }
}
