import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { V1NetworkPolicyPeer } from '@kubernetes/client-node';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { ApiServerError, type ApiServer } from './api-server.js';
import { parseDestination } from '@slipway/common/http/address-rules.js';
import { ownAddresses } from '../launch-variables.js';
import { type PreparationLine, SandboxBackendError } from '../sandbox-backend.js';
import { clusterFailure } from './cluster-objects.js';
import type { KubernetesBackendOptions } from './kubernetes.options.js';
import {
  type Destination,
  isSelected,
  networkPolicies,
  type NetworkPolicy,
  openPolicyName,
  type PolicyFacts,
  rulesPolicyName,
  widens,
} from './policy-rules.js';

const RETRY_MS = 30_000;
/** Labels that pods of one workload do not share, or that change with each roll-out. */
const PASSING_LABELS =
  /^(pod-template-hash|controller-revision-hash|statefulset\.kubernetes\.io\/.*|apps\.kubernetes\.io\/.*)$/;

/** Keeps the network policies of the installation's pods, which have an effect where the cluster enforces them. */
export class InstancePolicies {
  /** This machine's addresses in the stored policy; null when it has none, or was not stored yet. */
  private admitted: readonly string[] | null = null;
  private failedAt = -Infinity;

  constructor(
    private readonly api: ApiServer,
    private readonly namespace: string,
    private readonly options: KubernetesBackendOptions,
    private readonly addresses: () => string[] = ownAddresses,
  ) {}

  /** Creates or updates them. A failure is returned as a line for the log, since sandboxes run all the same. */
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
          : `give the service's account list, create and patch on networkpolicies in ${this.namespace}, or apply a policy of your own`;
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

  /**
   * Has the pods with these labels, which have rules, reach nothing but the proxy. Policies add up: returns the names of
   * others that let them reach or be reached by more.
   * @throws SandboxBackendError where they would not be closed; ApiServerError
   */
  async close(labels: Readonly<Record<string, string>>): Promise<string[]> {
    const { instanceId } = this.options;
    const closes = (policies: readonly unknown[]): boolean =>
      selecting(policies, labels).has(rulesPolicyName(instanceId)) &&
      !selecting(policies, labels).has(openPolicyName(instanceId));
    let policies = await this.list();
    if (!closes(policies)) {
      await this.store();
      policies = await this.list();
    }
    if (!closes(policies)) {
      throw new SandboxBackendError(
        `its network is not closed: something in the namespace ${this.namespace} changes the network policy ${rulesPolicyName(instanceId)}`,
      );
    }
    const widening = policies.filter((policy) => isSelected(policy, labels) && widens(policy)).map(nameOf);
    return widening.filter((name) => name !== rulesPolicyName(instanceId));
  }

  private async store(): Promise<void> {
    const { admitted, ...facts } = await this.facts();
    const known = new Set((await this.list()).map(nameOf));
    for (const policy of networkPolicies(facts)) {
      await this.write(policy, known);
    }
    this.admitted = admitted;
  }

  private async write(policy: NetworkPolicy, known: ReadonlySet<string>): Promise<void> {
    const { name } = policy.metadata;
    if (!known.has(name)) {
      await this.api.call(this.path, { method: 'POST', body: policy }).catch((error: unknown) => {
        // Another replica was faster, with the same rules.
        if (!(error instanceof ApiServerError) || error.status !== 409) {
          throw error;
        }
      });
    } else {
      await this.api.call(`${this.path}/${name}`, { method: 'PATCH', body: policy, as: 'merge' });
    }
  }

  private async list(): Promise<unknown[]> {
    return jsonList(await this.api.call(this.path), 'items');
  }

  private get path(): string {
    return `/apis/networking.k8s.io/v1/namespaces/${this.namespace}/networkpolicies`;
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
      hasProxy: this.options.egress !== null,
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

function nameOf(policy: unknown): string {
  return jsonText(policy, 'metadata', 'name') ?? '';
}

function selecting(policies: readonly unknown[], labels: Readonly<Record<string, string>>): Set<string> {
  return new Set(policies.filter((policy) => isSelected(policy, labels)).map(nameOf));
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
