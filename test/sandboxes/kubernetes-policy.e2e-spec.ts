import { beforeEach, describe, expect, it } from '@jest/globals';
import { jsonAt } from '@slipway/common/json-access.js';
import { InstancePolicies } from '../../packages/sandboxes/src/kubernetes/network-policy.js';
import { KUBERNETES_OPTIONS } from '../support/kubernetes-options.js';
import { useCluster } from '../support/use-cluster.js';

const POLICIES = '/apis/networking.k8s.io/v1/namespaces/agents/networkpolicies';
const POLICY = `${POLICIES}/slipway-test`;
const RULES = `${POLICIES}/slipway-test-rules`;
const WITH_RULES = { 'slipway.instance': 'test', 'slipway.egress': 'proxy' };

describe('the network policy of a service outside of the cluster', () => {
  const test = useCluster();
  let policy: InstancePolicies;
  let addresses: string[];

  beforeEach(() => {
    addresses = ['10.0.0.1'];
    const options = {
      ...KUBERNETES_OPTIONS,
      kubeconfig: test.kubeconfig,
      namespace: 'agents',
      egress: { host: null },
      callbackUrl: () => 'http://10.0.0.1:3000/api/v1/webhooks',
    };
    policy = new InstancePolicies(test.api, 'agents', options, () => [...addresses]);
  });

  const admitted = () => jsonAt(test.cluster.objects.get(POLICY), 'spec', 'ingress');
  const from = (...cidrs: string[]) => [{ from: cidrs.map((cidr) => ({ ipBlock: { cidr } })) }];

  it('admits the addresses that the machine has, and those that it gets', async () => {
    expect(await policy.keep()).toEqual([]);
    expect(admitted()).toEqual(from('10.0.0.1/32'));
    addresses.push('10.244.0.1', 'fd00::1');
    await policy.follow();
    expect(admitted()).toEqual(from('10.0.0.1/32', '10.244.0.1/32', 'fd00::1/128'));
  });

  it('asks for nothing while they are the same', async () => {
    await policy.keep();
    const before = test.cluster.requests.length;
    await policy.follow();
    expect(test.cluster.requests).toHaveLength(before);
  });

  it('says once that a change was refused, and not with every look', async () => {
    await policy.keep();
    addresses.push('10.244.0.1');
    test.cluster.fail(() => true, { kind: 'status', status: 403, reason: 'Forbidden' });
    await expect(policy.follow()).rejects.toThrow('fault 403');
    await policy.follow();
    expect(admitted()).toEqual(from('10.0.0.1/32'));
  });

  describe('for pods with rules', () => {
    const add = (name: string, spec: object): unknown =>
      test.cluster.put(`${POLICIES}/${name}`, { kind: 'NetworkPolicy', metadata: { name }, spec });

    it('is made again where it is gone, before a pod is started', async () => {
      await policy.keep();
      test.cluster.objects.delete(RULES);
      expect(await policy.close(WITH_RULES)).toEqual([]);
      expect(jsonAt(test.cluster.objects.get(RULES), 'spec', 'podSelector')).toEqual({
        matchLabels: WITH_RULES,
      });
    });

    it('is alone in selecting them, also after a version that knew no rules', async () => {
      const podSelector = { matchLabels: { 'slipway.instance': 'test' } };
      add('slipway-test', { podSelector, policyTypes: ['Egress'], egress: [{}] });
      expect(await policy.close(WITH_RULES)).toEqual([]);
    });

    it('names what others have added, which widens it', async () => {
      add('default-deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
      add('to-git', { podSelector: { matchLabels: { 'slipway.instance': 'test' } }, egress: [{}] });
      add('others', { podSelector: { matchLabels: { app: 'other' } }, egress: [{}] });
      expect(await policy.close(WITH_RULES)).toEqual(['to-git']);
    });

    it('is a reason to start none where it may not be looked at', async () => {
      await policy.keep();
      test.cluster.fail(() => true, { kind: 'status', status: 403, reason: 'Forbidden' });
      await expect(policy.close(WITH_RULES)).rejects.toThrow('fault 403');
    });
  });
});
