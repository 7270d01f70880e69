import type {
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicySpec,
} from '@kubernetes/client-node';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL } from '../container-layout.js';

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
/** Of pods that have rules: the value says what they reach. */
export const EGRESS_LABEL = 'slipway.egress';
export const REACHES_PROXY = 'proxy';
/** Of the pods of the egress proxy in `deploy/`. */
export const PROXY_LABELS = { 'app.kubernetes.io/name': 'slipway-egress' } as const;
const PROXY_PODS: V1NetworkPolicyPeer = { podSelector: { matchLabels: PROXY_LABELS } };

export interface Destination {
  peer: V1NetworkPolicyPeer;
  port: number | null;
}

/** The members that are set here, by the API server's names; the library's type has some of its own. */
export interface NetworkPolicy {
  apiVersion: 'networking.k8s.io/v1';
  kind: 'NetworkPolicy';
  metadata: { name: string; labels: Record<string, string> };
  spec: Pick<V1NetworkPolicySpec, 'podSelector' | 'policyTypes'> & {
    ingress: { from: readonly V1NetworkPolicyPeer[] }[];
    egress: V1NetworkPolicyEgressRule[];
  };
}

export interface PolicyFacts {
  instanceId: string;
  /** Whether there is an egress proxy, by which sandboxes may have rules. */
  hasProxy: boolean;
  sources: readonly V1NetworkPolicyPeer[];
  destinations: readonly Destination[];
}

type Rules = Pick<NetworkPolicy['spec'], 'podSelector' | 'ingress' | 'egress'>;

export function openPolicyName(instanceId: string): string {
  return `slipway-${instanceId.toLowerCase().replaceAll('_', '-')}`;
}

export function rulesPolicyName(instanceId: string): string {
  return `${openPolicyName(instanceId)}-rules`;
}

/**
 * What each kind of pod may reach: those without rules public addresses, name servers and what is configured; those with rules the
 * proxy alone, as a name server passes anything on; the proxy what sandboxes without rules may.
 */
export function networkPolicies({
  instanceId,
  hasProxy,
  sources,
  destinations,
}: PolicyFacts): NetworkPolicy[] {
  const name = openPolicyName(instanceId);
  const ingress = sources.length === 0 ? [] : [{ from: sources }];
  const sandboxes = { [INSTANCE_LABEL]: instanceId };
  const policy = (own: string, rules: Rules): NetworkPolicy => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: own, labels: sandboxes },
    spec: { ...rules, policyTypes: ['Ingress', 'Egress'] },
  });
  const world = worldRules(destinations);
  const withoutRules = { matchExpressions: [{ key: EGRESS_LABEL, operator: 'DoesNotExist' }] };
  const withRules = { [EGRESS_LABEL]: REACHES_PROXY };
  const ofProxies = [
    policy(rulesPolicyName(instanceId), {
      podSelector: { matchLabels: { ...sandboxes, ...withRules } },
      ingress,
      egress: [{ to: [PROXY_PODS] }],
    }),
    policy(`${name}-proxy`, {
      podSelector: { matchLabels: PROXY_LABELS },
      ingress: [{ from: [{ podSelector: { matchLabels: sandboxes } }] }],
      egress: world,
    }),
  ];
  const open = policy(name, {
    podSelector: { matchLabels: sandboxes, ...withoutRules },
    ingress,
    egress: [...world, ...(hasProxy ? [{ to: [PROXY_PODS] }] : [])],
  });
  return [open, ...(hasProxy ? ofProxies : [])];
}

function worldRules(destinations: readonly Destination[]): V1NetworkPolicyEgressRule[] {
  return [
    { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: NOT_PUBLIC_V4 } }, { ipBlock: { cidr: PUBLIC_V6 } }] },
    { ports: ['UDP', 'TCP'].map((protocol) => ({ protocol, port: DNS_PORT })) },
    ...destinations.map(({ peer, port }) => ({
      to: [peer],
      ...(port !== null && { ports: [{ protocol: 'TCP', port }] }),
    })),
  ];
}

/** Whether a policy, as the cluster has it, selects pods with these labels. */
export function isSelected(policy: unknown, labels: Readonly<Record<string, string>>): boolean {
  const selector = jsonAt(policy, 'spec', 'podSelector');
  const isMatched = ([name, value]: [string, unknown]): boolean => labels[name] === value;
  return (
    Object.entries(jsonAt(selector, 'matchLabels') ?? {}).every(isMatched) &&
    jsonList(selector, 'matchExpressions').every((expression) => holds(expression, labels))
  );
}

/** What it does not know counts as held, so that no policy is missed. */
function holds(expression: unknown, labels: Readonly<Record<string, string>>): boolean {
  const value = labels[jsonText(expression, 'key') ?? ''];
  const values = jsonList(expression, 'values');
  switch (jsonText(expression, 'operator')) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return true;
  }
}

/** Whether a policy lets its pods reach anything, or be reached. */
export function widens(policy: unknown): boolean {
  const types = jsonList(policy, 'spec', 'policyTypes');
  const rulesOf = (type: string, member: string): boolean =>
    (types.length === 0 || types.includes(type)) && jsonList(policy, 'spec', member).length > 0;
  return rulesOf('Egress', 'egress') || rulesOf('Ingress', 'ingress');
}
