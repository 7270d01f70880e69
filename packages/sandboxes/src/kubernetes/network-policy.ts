import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type {
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicySpec,
} from '@kubernetes/client-node';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { jsonAt } from '@slipway/common/json-access.js';
import { ApiServerError, type ApiServer } from './api-server.js';
import { parseDestination } from '@slipway/common/http/address-rules.js';
import { INSTANCE_LABEL } from '../container-layout.js';
import { ownAddresses } from '../launch-variables.js';
import type { PreparationLine } from '../sandbox-backend.js';
import { clusterFailure } from './cluster-objects.js';
import type { KubernetesBackendOptions } from './kubernetes.options.js';

/** Private, shared, link-local (metadata), loopback, documentation, multicast and reserved addresses. */
const NOT_PUBLIC_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];
/** Every public IPv6 address begins with 2 or 3. */
const PUBLIC_V6 = '2000::/3';
const DNS_PORT = 53;
const RETRY_MS = 30_000;
/** Labels that pods of one workload do not share, or that change with each roll-out. */
const PASSING_LABELS =
  /^(pod-template-hash|controller-revision-hash|statefulset\.kubernetes\.io\/.*|apps\.kubernetes\.io\/.*)$/;

interface Destination {
  peer: V1NetworkPolicyPeer;
  port: number | null;
}

/** The members that are set here, by the API server's names; the library's type has some of its own. */
interface NetworkPolicy {
  apiVersion: 'networking.k8s.io/v1';
  kind: 'NetworkPolicy';
  metadata: { name: string; labels: Record<string, string> };
  spec: Pick<V1NetworkPolicySpec, 'podSelector' | 'policyTypes'> & {
    ingress: { from: readonly V1NetworkPolicyPeer[] }[];
    egress: V1NetworkPolicyEgressRule[];
  };
}

interface PolicyFacts {
  instanceId: string;
  sources: readonly V1NetworkPolicyPeer[];
  destinations: readonly Destination[];
}

/**
 * Allows traffic in only from the service, and out to public addresses, name servers and the webhooks, if the cluster
 * enforces it.
 */
export class InstancePolicy {
  /** This machine's addresses in the stored policy; null when it has none, or was not stored yet. */
  private admitted: readonly string[] | null = null;
  private failedAt = -Infinity;

  constructor(
    private readonly api: ApiServer,
    private readonly namespace: string,
    private readonly options: KubernetesBackendOptions,
    private readonly addresses: () => string[] = ownAddresses,
  ) {}

  /** Creates or updates the policy. A failure is returned as a line for the log, since sandboxes run all the same. */
  async keep(): Promise<PreparationLine[]> {
    try {
      await this.store();
      return [];
    } catch (error) {
      if (!(error instanceof ApiServerError)) {
        throw error;
      }
      const hint =
        error.status === 404
          ? `create the namespace first: kubectl create namespace ${this.namespace}`
          : `give the service's account get, create and patch on networkpolicies in ${this.namespace}, or apply a policy of your own`;
      const failure = clusterFailure('the network of sandboxes is not restricted', error);
      return [{ level: 'warn', text: `${errorMessage(failure)}; ${hint}` }];
    }
  }

  /** Admits new addresses of this machine: the bridge to its pods may come with the first pod. */
  async follow(): Promise<void> {
    const isDue = performance.now() >= this.failedAt + RETRY_MS;
    if (this.admitted === null || !isDue || isDeepStrictEqual(this.admitted, this.addresses())) {
      return;
    }
    try {
      await this.store();
    } catch (error) {
      this.failedAt = performance.now();
      throw error;
    }
  }

  private async store(): Promise<void> {
    const { admitted, ...facts } = await this.facts();
    const policy = networkPolicy(facts);
    const path = `/apis/networking.k8s.io/v1/namespaces/${this.namespace}/networkpolicies`;
    const own = `${path}/${policy.metadata.name}`;
    if ((await this.api.find(own)) === null) {
      await this.api.call(path, { method: 'POST', body: policy }).catch((error: unknown) => {
        // Another replica was faster, with the same rules.
        if (!(error instanceof ApiServerError) || error.status !== 409) {
          throw error;
        }
      });
    } else {
      await this.api.call(own, { method: 'PATCH', body: policy, as: 'merge' });
    }
    this.admitted = admitted;
  }

  private async facts(): Promise<PolicyFacts & { admitted: readonly string[] | null }> {
    const { instanceId, reach, reachedFrom } = this.options;
    const configured = reachedFrom.map(peerOf);
    // Connections with `proxy` come from the pod's own node, which no policy keeps out.
    const isOwn = configured.length === 0 && reach !== 'proxy';
    const ownPods = isOwn ? await this.ownPods() : null;
    const own = isOwn && ownPods === null ? this.addresses() : null;
    const sources = [...configured, ...(ownPods ?? []), ...(own ?? []).map(addressPeer)];
    const allowed = await Promise.all(this.options.allow.map(destinationsOf));
    const callback = new URL(this.options.callbackUrl());
    const port = Number(callback.port || (callback.protocol === 'https:' ? 443 : 80));
    const addresses = await addressesOf(callback.hostname.replace(/^\[|\]$/g, ''));
    // A Service's address becomes that of a pod, and perhaps another port, before a policy applies.
    const pods = sources.filter(({ podSelector }) => podSelector !== undefined);
    return {
      instanceId,
      sources,
      admitted: own,
      destinations: [
        ...allowed.flat(),
        ...addresses.map((address) => ({ peer: addressPeer(address), port: port || null })),
        ...pods.map((peer) => ({ peer, port: null })),
      ],
    };
  }

  private async ownPods(): Promise<V1NetworkPolicyPeer[] | null> {
    if (this.options.kubeconfig !== null) {
      return null;
    }
    const namespace = this.api.ownNamespace ?? this.namespace;
    const pod = await this.api.find(`/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(hostname())}`);
    const labels = Object.entries(jsonAt(pod, 'metadata', 'labels') ?? {}).flatMap(([name, value]) =>
      typeof value === 'string' && !PASSING_LABELS.test(name) ? [[name, value] as const] : [],
    );
    return labels.length === 0
      ? null
      : [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
            podSelector: { matchLabels: Object.fromEntries(labels) },
          },
        ];
  }
}

export function networkPolicy({ instanceId, sources, destinations }: PolicyFacts): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: `slipway-${instanceId.toLowerCase().replaceAll('_', '-')}`,
      labels: { [INSTANCE_LABEL]: instanceId },
    },
    spec: {
      podSelector: { matchLabels: { [INSTANCE_LABEL]: instanceId } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: sources.length === 0 ? [] : [{ from: sources }],
      egress: [
        { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: NOT_PUBLIC_V4 } }, { ipBlock: { cidr: PUBLIC_V6 } }] },
        { ports: ['UDP', 'TCP'].map((protocol) => ({ protocol, port: DNS_PORT })) },
        ...destinations.map(({ peer, port }) => ({
          to: [peer],
          ...(port !== null && { ports: [{ protocol: 'TCP', port }] }),
        })),
      ],
    },
  };
}

/** Parses a range, or `label=value` for pods with the label in any namespace. */
function peerOf(entry: string): V1NetworkPolicyPeer {
  const [label = '', value] = entry.split('=', 2);
  return value === undefined
    ? { ipBlock: { cidr: entry } }
    : { namespaceSelector: {}, podSelector: { matchLabels: { [label]: value } } };
}

function addressPeer(address: string): V1NetworkPolicyPeer {
  return { ipBlock: { cidr: `${address}/${isIP(address) === 6 ? 128 : 32}` } };
}

/** Resolves names now, since a policy takes only addresses. A name that does not resolve opens nothing. */
async function destinationsOf(text: string): Promise<Destination[]> {
  const destination = parseDestination(text);
  if (destination === null) {
    return [];
  }
  if (destination.kind === 'range') {
    return [{ peer: { ipBlock: { cidr: destination.range } }, port: null }];
  }
  const { host, port } = destination;
  return (await addressesOf(host)).map((address) => ({ peer: addressPeer(address), port }));
}

async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) {
    return [host];
  }
  try {
    return (await lookup(host, { all: true }))
      .map(({ address }) => address)
      .filter((address) => !isLoopbackHost(address));
  } catch {
    return [];
  }
}
