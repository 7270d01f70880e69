import { connect, createServer, type Server, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { DiscoveryV1Api, PortForward } from '@kubernetes/client-node';
import { setTimeout as wait } from 'node:timers/promises';
import { HeldSockets, joinSockets } from '../../support/held-sockets.js';
import { startListening, stopServer } from '../../support/start-listening.js';
import type { TestCluster } from './test-cluster.js';

const REFRESH_MS = 200;

interface Endpoint {
  address: string;
  pod: string;
}

/**
 * A Service as clients meet it: an address whose connections go to the pods that are ready, in turns. Clusters do that by
 * themselves, but not all of them for programs outside; so this reads the same EndpointSlices and does the same.
 */
export class ServiceRelay {
  private readonly sockets = new HeldSockets();
  private readonly stopped = new AbortController();
  private endpoints: Endpoint[] = [];
  private turn = 0;

  private constructor(
    private readonly cluster: TestCluster,
    private readonly namespace: string,
    private readonly service: string,
    private readonly port: number,
    private readonly server: Server,
    /** Where it listens. */
    readonly url: string,
  ) {}

  static async start(
    cluster: TestCluster,
    target: { namespace: string; service: string; port: number },
  ): Promise<ServiceRelay> {
    let self: ServiceRelay;
    const server = createServer((client) => self.pass(client));
    const host = cluster.hostAddress;
    const url = `http://${host}:${await startListening(server, 0, host)}`;
    self = new ServiceRelay(cluster, target.namespace, target.service, target.port, server, url);
    await self.refresh();
    void self.follow();
    return self;
  }

  async close(): Promise<void> {
    this.stopped.abort();
    this.sockets.cut();
    await stopServer(this.server);
  }

  private async follow(): Promise<void> {
    const { signal } = this.stopped;
    while (!signal.aborted) {
      await wait(REFRESH_MS, null, { signal }).catch(() => null);
      // What was known stays, as it does on a node that does not reach the API server.
      await this.refresh().catch(() => null);
    }
  }

  private async refresh(): Promise<void> {
    const { items } = await this.cluster.config.makeApiClient(DiscoveryV1Api).listNamespacedEndpointSlice({
      namespace: this.namespace,
      labelSelector: `kubernetes.io/service-name=${this.service}`,
    });
    this.endpoints = items
      .flatMap(({ endpoints }) => endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready === true)
      .flatMap(({ addresses: [address], targetRef }) =>
        address === undefined ? [] : [{ address, pod: targetRef?.name ?? '' }],
      );
  }

  private pass(client: Socket): void {
    this.sockets.hold(client);
    this.turn += 1;
    const first = this.turn % Math.max(this.endpoints.length, 1);
    const inTurns = [...this.endpoints.slice(first), ...this.endpoints.slice(0, first)];
    if (this.cluster.reachesPods) {
      this.connect(client, inTurns);
    } else {
      void this.forward(client, inTurns[0]);
    }
  }

  /** To the first pod that takes the connection: one that was killed is known for a moment yet. */
  private connect(client: Socket, [endpoint, ...others]: readonly Endpoint[]): void {
    if (endpoint === undefined || client.destroyed) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(this.port, endpoint.address);
    const tryNext = () => this.connect(client, others);
    this.sockets.hold(upstream);
    upstream.once('error', tryNext);
    upstream.once('connect', () => {
      upstream.off('error', tryNext);
      joinSockets(client, upstream);
    });
  }

  private async forward(client: Socket, endpoint: Endpoint | undefined): Promise<void> {
    if (endpoint === undefined) {
      client.resetAndDestroy();
      return;
    }
    const forward = new PortForward(this.cluster.config);
    const failures = new PassThrough();
    failures.on('data', () => client.destroy());
    try {
      await forward.portForward(this.namespace, endpoint.pod, [this.port], client, failures, client);
    } catch {
      client.destroy();
    }
  }
}
