import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { jsonAt } from '@slipway/common/json-access.js';
import { ClusterObjects } from '../../packages/sandboxes/src/kubernetes/cluster-objects.js';
import type { KubernetesBackendOptions } from '../../packages/sandboxes/src/kubernetes/kubernetes.options.js';
import { KubernetesSandboxBackend } from '@slipway/sandboxes/kubernetes/kubernetes.backend.js';
import { InstancePolicies } from '../../packages/sandboxes/src/kubernetes/network-policy.js';
import { sandboxObjectName } from '../../packages/sandboxes/src/kubernetes/sandbox-manifest.js';
import { PodNetwork } from '../../packages/sandboxes/src/kubernetes/pod-network.js';
import { SandboxBackendError, SandboxBackendUnavailableError } from '@slipway/sandboxes/sandbox-backend.js';
import { KUBERNETES_OPTIONS } from '../support/kubernetes-options.js';
import { reservedPort } from '../support/reserved-port.js';
import { sandboxLaunch } from '../support/sandbox-launch.js';
import { startListening, stopServer } from '../support/start-listening.js';
import { useCluster } from '../support/use-cluster.js';

const PROXY = '/api/v1/namespaces/agents/pods/slipway-egress-1';
const POLICIES = '/apis/networking.k8s.io/v1/namespaces/agents/networkpolicies';
const POLICY = `${POLICIES}/slipway-test`;
const RULES = `${POLICIES}/slipway-test-rules`;
const WITH_RULES = { 'slipway.instance': 'test', 'slipway.egress': 'proxy' };

describe('the way out of pods with rules', () => {
  const test = useCluster();
  let port: number;

  beforeEach(async () => {
    port = await reservedPort();
    proxyIs('True');
  });

  function proxyIs(ready: 'True' | 'False'): void {
    const labels = { 'app.kubernetes.io/name': 'slipway-egress' };
    const status = { conditions: [{ type: 'Ready', status: ready }] };
    test.cluster.put(PROXY, { kind: 'Pod', metadata: { name: 'slipway-egress-1', labels }, status });
  }

  function network(egress: KubernetesBackendOptions['egress'], isInCluster = false): PodNetwork {
    const { api, kubeconfig } = test;
    const options = { ...KUBERNETES_OPTIONS, kubeconfig, namespace: 'agents', egress };
    const objects = new ClusterObjects(api, 'agents', 'test', () => undefined);
    const callbackUrl = (): string => 'http://10.0.0.1:3000/api/v1/webhooks';
    return new PodNetwork(api, objects, { ...options, callbackUrl }, isInCluster);
  }

  const launch = (isOnlyWay = true) =>
    sandboxLaunch({
      program: { kind: 'native', image: null },
      egress: { port, credential: 'a.secret', authority: null, isOnlyWay },
    });

  it('is the address of the proxy, by a policy that is there before the pod', async () => {
    const placed = await network({ host: 'localhost' }).place(launch());
    expect(placed.proxyHost).toMatch(/^(127\.0\.0\.1|\[::1\])$/);
    expect(test.cluster.objects.has(RULES)).toBe(true);
  });

  it.each<[string, KubernetesBackendOptions['egress'], new () => Error]>([
    ['set EGRESS_PROXY_KEY', null, SandboxBackendError],
    ['slipway-egress.agents.svc has no address', { host: null }, SandboxBackendError],
    ['proxy.invalid has no address', { host: 'proxy.invalid' }, SandboxBackendError],
  ])('is refused where there is none: %s', async (reason, egress, type) => {
    const failure: unknown = await network(egress)
      .place(launch())
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(type);
    expect(String(failure)).toContain(reason);
  });

  it('is the only one for a pod that was made before, if rules have come since, or the proxy moved', async () => {
    const options = {
      ...KUBERNETES_OPTIONS,
      kubeconfig: test.kubeconfig,
      namespace: 'agents',
      egress: { host: '127.0.0.1' },
      reachedFrom: ['10.0.0.0/8'],
      callbackUrl: () => 'http://10.0.0.1:3000/api/v1/webhooks',
    };
    const backend = new KubernetesSandboxBackend(options);
    const moved = new KubernetesSandboxBackend({ ...options, egress: { host: '127.0.0.2' } });
    await Promise.all([backend.prepare(), moved.prepare()]);
    try {
      const { signal } = new AbortController();
      const ruled = { ...launch(), program: { kind: 'image' as const, image: 'stock:1', args: [] } };
      const pod = `/api/v1/namespaces/agents/pods/${sandboxObjectName(ruled.id)}`;
      await backend.start({ ...ruled, egress: undefined }, signal);
      const uid = test.cluster.objects.get(pod)?.metadata['uid'];
      await backend.start(ruled, signal);
      expect(test.cluster.objects.get(pod)?.metadata).toMatchObject({
        labels: { 'slipway.egress': 'proxy' },
      });
      expect(test.cluster.objects.get(pod)?.metadata['uid']).not.toBe(uid);
      const closed = test.cluster.objects.get(pod)?.metadata['uid'];
      await backend.start(ruled, signal);
      expect(test.cluster.objects.get(pod)?.metadata['uid']).toBe(closed);
      await moved.start(ruled, signal);
      expect(test.cluster.objects.get(pod)?.metadata['uid']).not.toBe(closed);
    } finally {
      await Promise.all([backend.disconnect(), moved.disconnect()]);
    }
  });

  it('is waited for while no proxy is ready', async () => {
    proxyIs('False');
    await expect(network({ host: '127.0.0.1' }).place(launch())).rejects.toThrow(
      SandboxBackendUnavailableError,
    );
    proxyIs('True');
    await network({ host: '127.0.0.1' }).place(launch());
  });

  describe('in a cluster whose network keeps no policies, as the service finds in its pod', () => {
    let proxy: Server;

    beforeEach(async () => {
      proxy = createServer();
      await startListening(proxy, port);
    });

    afterEach(async () => {
      if (proxy.listening) {
        await stopServer(proxy);
      }
    });

    it('is none, and one as soon as policies are kept', async () => {
      const inCluster = network({ host: '127.0.0.1' }, true);
      await expect(inCluster.place(launch())).rejects.toThrow('does not enforce network policies');
      await stopServer(proxy);
      await inCluster.place(launch());
    });

    it('is no matter for credentials, nor for a service elsewhere, which policies do not keep out', async () => {
      const open = network({ host: '127.0.0.1' }, true).place(launch(false));
      await expect(open).resolves.toMatchObject({ proxyHost: '127.0.0.1' });
      const elsewhere = network({ host: '127.0.0.1' }, false).place(launch());
      await expect(elsewhere).resolves.toMatchObject({ proxyHost: '127.0.0.1' });
    });
  });
});

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
