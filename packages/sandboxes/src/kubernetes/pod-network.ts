import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, isIPv6 } from 'node:net';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import {
  type EgressAccess,
  type ProgramLaunch,
  SandboxBackendError,
  SandboxBackendUnavailableError,
} from '../sandbox-backend.js';
import type { ApiServer } from './api-server.js';
import type { ClusterObjects } from './cluster-objects.js';
import type { KubernetesBackendOptions } from './kubernetes.options.js';
import { InstancePolicies } from './network-policy.js';
import { PROXY_LABELS } from './policy-rules.js';
import { type PodLaunch, podTemplate } from './sandbox-manifest.js';

const PROXY_SERVICE = 'slipway-egress';
const [[LABEL, VALUE]] = Object.entries(PROXY_LABELS) as [[string, string]];
/** Where there is a key but no proxy is ready, starts say so: it may be installed at the same time as the service. */
export const NO_PROXY =
  'there is no egress proxy in the cluster; set EGRESS_PROXY_KEY, and apply deploy/kubernetes/components/egress-proxy or set egressProxy.enabled of the chart';
/** Some networks drop what a policy refuses. */
const PROBE_MS = 1_000;
const PROBE_EVERY_MS = 60_000;

/** What pods reach: by policies, and by the egress proxy where they have rules or credentials outside. */
export class PodNetwork {
  readonly policies: InstancePolicies;
  private enforcedAt = -Infinity;

  /** @param isInCluster whether the service is a pod that policies keep out of others */
  constructor(
    private readonly api: ApiServer,
    private readonly objects: ClusterObjects,
    private readonly options: KubernetesBackendOptions,
    private readonly isInCluster = options.kubeconfig === null && options.reachedFrom.length === 0,
  ) {
    this.policies = new InstancePolicies(api, objects.namespace, options);
  }

  /**
   * Returns the launch with the address at which its pod finds the egress proxy, if it needs that, and closes every other way
   * where it has rules.
   * @throws SandboxBackendError where that cannot be; SandboxBackendUnavailableError while no proxy is ready; ApiServerError
   */
  async place(launch: ProgramLaunch): Promise<PodLaunch> {
    const { egress } = launch;
    if (egress === undefined) {
      return launch;
    }
    if (this.options.egress === null) {
      throw new SandboxBackendError(
        `its rules, or credentials that stay outside of it, cannot be kept: ${NO_PROXY}`,
      );
    }
    const host = this.options.egress.host ?? `${PROXY_SERVICE}.${this.objects.namespace}.svc`;
    const [address] = await Promise.all([addressOf(host), this.requireReadyProxy()]);
    const placed = { ...launch, proxyHost: isIPv6(address) ? `[${address}]` : address };
    if (egress.isOnlyWay) {
      await this.close(placed);
      await this.requireEnforcement(address, egress);
    }
    return placed;
  }

  private async close(launch: PodLaunch): Promise<void> {
    const { labels } = podTemplate(launch, this.options).metadata;
    const widening = await this.policies.close(labels);
    if (widening.length > 0) {
      launch.onShortfall?.(
        `Its rules may not hold: network policies add up, and in the namespace ${this.objects.namespace} these select its pod as well: ${widening.join(', ')}.`,
      );
    }
  }

  private async requireReadyProxy(): Promise<void> {
    const { podsPath, namespace } = this.objects;
    const pods = await this.api.call(podsPath, { query: { labelSelector: `${LABEL}=${VALUE}` } });
    if (!jsonList(pods, 'items').some(isReady)) {
      throw new SandboxBackendUnavailableError(
        `no pod of the egress proxy is ready: kubectl --namespace ${namespace} get pods --selector ${LABEL}=${VALUE}`,
      );
    }
  }

  /** Nothing in a cluster says whether its network keeps policies; that of the proxy keeps the service out. */
  private async requireEnforcement(address: string, { port }: EgressAccess): Promise<void> {
    if (!this.isInCluster || performance.now() < this.enforcedAt + PROBE_EVERY_MS) {
      return;
    }
    if (await isReached(address, port)) {
      throw new SandboxBackendError(
        'its rules cannot be kept: the network of the cluster does not enforce network policies, since the service reaches the egress proxy, which is open to sandboxes alone',
      );
    }
    this.enforcedAt = performance.now();
  }
}

/** Pods with rules have no name server, so they are told an address. */
async function addressOf(host: string): Promise<string> {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    throw new SandboxBackendError(
      `the egress proxy cannot be found, ${host} has no address (${errorMessage(error)}): its Service is in deploy/kubernetes/components/egress-proxy and in the chart; SANDBOX_EGRESS_HOST names another host`,
      { cause: error },
    );
  }
}

async function isReached(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(PROBE_MS) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function isReady(pod: unknown): boolean {
  return jsonList(pod, 'status', 'conditions').some(
    (condition) => jsonText(condition, 'type') === 'Ready' && jsonText(condition, 'status') === 'True',
  );
}
