import { connect, createServer, type Server, type Socket } from 'node:net';
import { DiscoveryV1Api } from '@kubernetes/client-node';
import { startListening } from '../../support/start-listening.js';
import type { TestCluster } from './test-cluster.js';

/** A name in the certificate of every API server. */
const NAME = 'kubernetes.default.svc';

/**
 * Where pods reach the API server in a cluster without a network for Services: an address of this machine that leads to it.
 */
export class ApiServerRelay {
  private constructor(
    private readonly server: Server,
    private readonly sockets: ReadonlySet<Socket>,
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
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      const upstream = connect(Number(target.port || 443), target.hostname);
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        // Either side may be cut at any time; 'close' follows.
        socket.on('error', () => undefined);
        socket.on('close', () => {
          sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
      }
      client.pipe(upstream).pipe(client);
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
    this.sockets.forEach((socket) => socket.destroy());
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
    });
  }
}
