import { describe, expect, it } from '@jest/globals';
import { isSelected, networkPolicies, type NetworkPolicy, type PolicyFacts, widens } from './policy-rules.js';

const SERVICE = { podSelector: { matchLabels: { app: 'slipway' } } };

const FACTS: PolicyFacts = { instanceId: 'x', hasProxy: false, sources: [], destinations: [] };
const PROXY = { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'slipway-egress' } } };

function only(facts: Partial<PolicyFacts>): NetworkPolicy {
  const [policy, ...others] = networkPolicies({ ...FACTS, ...facts });
  if (policy === undefined || others.length > 0) {
    throw new Error('expected one policy');
  }
  return policy;
}

describe('networkPolicies', () => {
  it('lets in the service only, and out to public addresses, name servers and what is named', () => {
    const peer = { ipBlock: { cidr: '10.0.0.5/32' } };
    const { metadata, spec } = only({
      instanceId: 'Prod_1',
      sources: [SERVICE],
      destinations: [
        { peer, port: 3000 },
        { peer: SERVICE, port: null },
      ],
    });
    expect(metadata).toEqual({ name: 'slipway-prod-1', labels: { 'slipway.instance': 'Prod_1' } });
    expect(spec.podSelector).toEqual({
      matchLabels: { 'slipway.instance': 'Prod_1' },
      matchExpressions: [{ key: 'slipway.egress', operator: 'DoesNotExist' }],
    });
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(spec.ingress).toEqual([{ from: [SERVICE] }]);
    expect(spec.egress.slice(1)).toEqual([
      {
        ports: [
          { protocol: 'UDP', port: 53 },
          { protocol: 'TCP', port: 53 },
        ],
      },
      { to: [peer], ports: [{ protocol: 'TCP', port: 3000 }] },
      { to: [SERVICE] },
    ]);
    const [everywhere] = spec.egress[0]?.to ?? [];
    expect(everywhere?.ipBlock?.except).toEqual(
      expect.arrayContaining([
        '10.0.0.0/8',
        '169.254.0.0/16',
        '172.16.0.0/12',
        '192.168.0.0/16',
        '127.0.0.0/8',
        // Not routed on the internet, and some machines have such an address of their own.
        '192.0.2.0/24',
        '198.51.100.0/24',
        '203.0.113.0/24',
      ]),
    );
  });

  it('lets in nobody where pods are reached through the API server', () => {
    expect(only({}).spec.ingress).toEqual([]);
  });

  it('lets pods with rules reach the proxy alone, and the proxy what pods without rules reach', () => {
    const destinations = [{ peer: { ipBlock: { cidr: '10.0.0.5/32' } }, port: 3000 }];
    const [open, rules, proxy] = networkPolicies({
      ...FACTS,
      hasProxy: true,
      sources: [SERVICE],
      destinations,
    });
    const withoutProxy = only({ destinations }).spec.egress;
    expect(rules).toMatchObject({
      metadata: { name: 'slipway-x-rules' },
      spec: {
        podSelector: { matchLabels: { 'slipway.instance': 'x', 'slipway.egress': 'proxy' } },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [{ from: [SERVICE] }],
        egress: [{ to: [PROXY] }],
      },
    });
    expect(proxy).toMatchObject({
      metadata: { name: 'slipway-x-proxy' },
      spec: {
        ...PROXY,
        ingress: [{ from: [{ podSelector: { matchLabels: { 'slipway.instance': 'x' } } }] }],
        egress: withoutProxy,
      },
    });
    expect(open?.spec.egress).toEqual([...withoutProxy, { to: [PROXY] }]);
  });

  it.each([
    [{ 'slipway.instance': 'x' }, ['slipway-x']],
    [{ 'slipway.instance': 'x', 'slipway.egress': 'proxy' }, ['slipway-x-rules']],
    [{ 'slipway.instance': 'x', 'slipway.egress': 'other' }, []],
    [PROXY.podSelector.matchLabels, ['slipway-x-proxy']],
    [{ 'slipway.instance': 'y', 'slipway.egress': 'proxy' }, []],
  ])('has one policy at most for a pod with %j', (labels, names) => {
    const policies = networkPolicies({ ...FACTS, hasProxy: true });
    const selecting = policies.filter((policy) => isSelected(policy, labels));
    expect(selecting.map(({ metadata }) => metadata.name)).toEqual(names);
  });
});

describe('isSelected', () => {
  const labels = { a: '1', b: '2' };
  const expression = (operator: string, key: string, values?: string[]) => ({
    matchExpressions: [{ key, operator, values }],
  });

  it.each<[object, boolean]>([
    [{}, true],
    [{ matchLabels: { a: '1' } }, true],
    [{ matchLabels: { a: '1', c: '1' } }, false],
    [{ matchLabels: { a: '2' } }, false],
    [expression('In', 'a', ['0', '1']), true],
    [expression('In', 'a', ['0']), false],
    [expression('In', 'c', ['0']), false],
    [expression('NotIn', 'a', ['1']), false],
    [expression('NotIn', 'a', ['0']), true],
    [expression('NotIn', 'c', ['0']), true],
    [expression('Exists', 'a'), true],
    [expression('Exists', 'c'), false],
    [expression('DoesNotExist', 'a'), false],
    [expression('DoesNotExist', 'c'), true],
    [{ ...expression('Exists', 'b'), matchLabels: { a: '0' } }, false],
    // Of a Kubernetes to come: better a line too many.
    [expression('Like', 'c'), true],
  ])('%j: %s', (podSelector, isTrue) => {
    expect(isSelected({ spec: { podSelector } }, labels)).toBe(isTrue);
  });
});

describe('widens', () => {
  it.each<[object, boolean]>([
    [{ policyTypes: ['Ingress', 'Egress'] }, false],
    [{ policyTypes: ['Ingress', 'Egress'], egress: [] }, false],
    [{ policyTypes: ['Ingress', 'Egress'], egress: [{}] }, true],
    [{ policyTypes: ['Ingress'], ingress: [{ from: [] }] }, true],
    [{ policyTypes: ['Ingress'], ingress: [], egress: [{}] }, false],
    [{ egress: [{ to: [] }] }, true],
  ])('%j: %s', (spec, isTrue) => {
    expect(widens({ spec: { podSelector: {}, ...spec } })).toBe(isTrue);
  });
});
