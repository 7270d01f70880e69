import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';

const ROOT = path.resolve(import.meta.dirname, '../..');
const CHART = 'deploy/helm/slipway';
const hasTools = ['helm', 'kubectl'].every(
  (tool) => spawnSync(tool, ['version', '--client']).error === undefined,
);

interface KubernetesObject {
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: object };
  data?: Record<string, string>;
  spec?: { template?: { metadata: { labels?: object }; spec: { containers: Container[] } } };
}

interface Container {
  env: { name: string; value?: string }[];
  envFrom?: object;
}

function output(command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8' });
}

function objectsOf(text: string): Map<string, KubernetesObject> {
  const objects = parseAllDocuments(text).map((document): KubernetesObject => document.toJS());
  return new Map(
    objects
      .map((object): [string, KubernetesObject] => {
        const { kind, metadata } = object;
        return [[kind, metadata.namespace, metadata.name].join('/'), comparable(object)];
      })
      .toSorted(([a], [b]) => a.localeCompare(b, 'en')),
  );
}

function comparable(object: KubernetesObject): KubernetesObject {
  if (object.kind === 'Namespace') {
    delete object.metadata.annotations;
  }
  return object;
}

/** Kustomize keeps the configuration in a ConfigMap with a hash in its name, the chart in the Deployment. */
function withConfigurationInside(objects: Map<string, KubernetesObject>): Record<string, KubernetesObject> {
  const { data = {} } = objects.get('ConfigMap/slipway/slipway') ?? {};
  objects.delete('ConfigMap/slipway/slipway');
  for (const container of containersOf(objects.get('Deployment/slipway/slipway'))) {
    delete container.envFrom;
    const names = Object.keys(data).toSorted();
    container.env.unshift(...names.map((name) => ({ name, value: data[name] ?? '' })));
  }
  return Object.fromEntries(objects);
}

function containersOf(deployment: KubernetesObject | undefined): Container[] {
  return deployment?.spec?.template?.spec.containers ?? [];
}

/** What kustomize makes of the base and components. */
function kustomized(components: readonly string[]): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'kustomize-'));
  const from = (name: string): string => path.relative(folder, path.join(ROOT, 'deploy/kubernetes', name));
  const overlay = {
    resources: [from('base')],
    components: components.map((name) => from(`components/${name}`)),
  };
  try {
    writeFileSync(path.join(folder, 'kustomization.yaml'), JSON.stringify(overlay));
    return output('kubectl', 'kustomize', folder);
  } finally {
    rmSync(folder, { recursive: true, maxRetries: 10 });
  }
}

// CI has both; elsewhere the author of a change to the chart installs them.
(hasTools ? describe : describe.skip)('the Helm chart', () => {
  it.each<[string[], string[]]>([
    [[], []],
    [
      ['egress-proxy', 'sandbox-quota'],
      ['--set', 'egressProxy.enabled=true', '--set', 'sandboxes.quota.enabled=true'],
    ],
  ])('makes what deploy/kubernetes/base makes with components %j', (components, values) => {
    const base = kustomized(components)
      .replaceAll(/\bslipway-[a-z0-9]{10}$/gm, 'slipway')
      .replaceAll('image: slipway\n', 'image: slipway:TAG\n');
    const chart = output(
      'helm',
      'template',
      'slipway',
      CHART,
      '--namespace',
      'slipway',
      '--set',
      'image.tag=TAG',
      ...values,
    );
    const expected = objectsOf(base);
    // helm makes the namespace of a release by itself.
    expected.delete('Namespace//slipway');

    expect(Object.fromEntries(objectsOf(chart))).toEqual(withConfigurationInside(expected));
  });

  it.each([[[]], [['--values', `${CHART}/ci/all.yaml`]]])('passes lint and renders with %j', (values) => {
    expect(output('helm', 'lint', '--strict', CHART, ...values)).toContain('0 chart(s) failed');
    expect(objectsOf(output('helm', 'template', 'slipway', CHART, ...values)).size).toBeGreaterThan(10);
  });

  it('keeps the files of sandboxes when the release is removed, or no longer has their namespace', () => {
    const namespace = parseAllDocuments(output('helm', 'template', 'slipway', CHART))
      .map((document): KubernetesObject => document.toJS())
      .find(({ kind }) => kind === 'Namespace');

    expect(namespace?.metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
  });

  it('lets a node be drained where there is one replica', () => {
    const objects = objectsOf(output('helm', 'template', 'slipway', CHART, '--set', 'replicas=1'));

    expect(objects.get('PodDisruptionBudget/default/slipway')?.spec).toMatchObject({ maxUnavailable: 1 });
  });

  it('adds environment and volumes of the operator to its own', () => {
    const objects = objectsOf(
      output('helm', 'template', 'slipway', CHART, '--values', `${CHART}/ci/all.yaml`),
    );
    const secret = { secretKeyRef: { name: 'sso', key: 'secret' } };

    expect(objects.get('Deployment/default/slipway')?.spec?.template).toMatchObject({
      spec: {
        containers: [
          {
            env: expect.arrayContaining([
              expect.objectContaining({ name: 'DATABASE_URL' }),
              { name: 'ENTERPRISE_SSO_CLIENT_SECRET', valueFrom: secret },
            ]),
            volumeMounts: expect.arrayContaining([
              { name: 'data', mountPath: '/data' },
              { name: 'authority', mountPath: '/etc/authority', readOnly: true },
            ]),
          },
        ],
        volumes: expect.arrayContaining([{ name: 'authority', configMap: { name: 'authority' } }]),
      },
    });
  });

  it('leaves replicas to an autoscaler, users to the cluster, and takes labels and tolerations', () => {
    const objects = objectsOf(
      output('helm', 'template', 'slipway', CHART, '--values', `${CHART}/ci/all.yaml`),
    );
    const spec = objects.get('Deployment/default/slipway')?.spec;

    expect(spec).not.toHaveProperty('replicas');
    expect(spec?.template).toMatchObject({
      metadata: { labels: { 'app.kubernetes.io/name': 'slipway', team: 'platform' } },
      spec: {
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        priorityClassName: 'vip',
      },
    });
    expect(spec?.template).not.toHaveProperty('spec.securityContext.runAsUser');
    const [container] = containersOf(objects.get('Deployment/default/slipway'));
    const config = container?.env.find(({ name }) => name === 'SANDBOX_POD_TEMPLATE')?.value;
    expect(JSON.parse(config ?? '')).toEqual({
      metadata: { labels: { team: 'platform' } },
      spec: { tolerations: [{ key: 'agents', operator: 'Exists' }] },
    });
  });

  it('keeps the configuration of a revision in its pods, with dollar signs as they are', () => {
    const rendered = output('helm', 'template', 'slipway', CHART, '--set', 'config.LOG_LEVEL=a$(HOST)$$b');
    const objects = objectsOf(rendered);
    const [container] = containersOf(objects.get('Deployment/default/slipway'));

    expect([...objects.keys()].filter((key) => key.startsWith('ConfigMap'))).toEqual([]);
    expect(container?.envFrom).toBeUndefined();
    // Kubernetes takes two for one, and replaces $(NAME).
    expect(container?.env).toContainEqual({ name: 'LOG_LEVEL', value: 'a$$(HOST)$$$$b' });
  });

  it('has the egress proxy listen at another port, over IPv6, with what the operator adds', () => {
    const set = ['--set', 'config.SANDBOX_EGRESS_PORT=3190', '--set-string', 'config.HOST=::'];
    const objects = objectsOf(
      output('helm', 'template', 'slipway', CHART, '--values', `${CHART}/ci/all.yaml`, ...set),
    );
    const name = 'slipway-sandboxes/slipway-egress';
    expect(objects.get(`Service/${name}`)?.spec).toMatchObject({
      ports: [{ port: 3190, targetPort: 'proxy' }],
    });
    expect(objects.get(`Deployment/${name}`)?.spec).toMatchObject({
      replicas: 3,
      template: {
        spec: {
          automountServiceAccountToken: false,
          containers: [
            {
              ports: [{ name: 'proxy', containerPort: 3190 }],
              env: expect.arrayContaining([
                { name: 'EGRESS_PROXY_LISTEN', value: '[::]:3190' },
                { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/authority/ca.crt' },
              ]),
            },
          ],
        },
      },
    });
  });

  it.each([
    ['made beside them', [], 'slipway-sandboxes-egress'],
    ['of the operator', ['--set', 'egressProxy.priorityClassName=ways-out'], 'ways-out'],
  ])('counts no egress proxy among the sandboxes of the quota, by a class %s', (_whose, values, name) => {
    const objects = objectsOf(
      output('helm', 'template', 'slipway', CHART, '--values', `${CHART}/ci/all.yaml`, ...values),
    );
    expect(objects.get('Deployment/slipway-sandboxes/slipway-egress')?.spec?.template).toMatchObject({
      spec: { priorityClassName: name },
    });
    expect(objects.has('PriorityClass//slipway-sandboxes-egress')).toBe(values.length === 0);
    const quotas = [...objects.values()].filter(({ kind }) => kind === 'ResourceQuota');
    expect(quotas.map(({ spec }) => spec)).toEqual([
      {
        hard: {
          persistentvolumeclaims: '500',
          'requests.storage': '5Ti',
          'count/sandboxes.agents.x-k8s.io': '500',
        },
      },
      {
        hard: { pods: '100', 'limits.memory': '400Gi' },
        scopeSelector: {
          matchExpressions: [{ scopeName: 'PriorityClass', operator: 'NotIn', values: [name] }],
        },
      },
    ]);
  });

  it('can deny sandboxes with rules everything but the proxy, whatever policies of the namespace allow', () => {
    const policy = 'ClusterNetworkPolicy//slipway-sandboxes-egress';
    const on = ['--set', 'egressProxy.enabled=true'];
    expect(objectsOf(output('helm', 'template', 'slipway', CHART, ...on)).has(policy)).toBe(false);
    const all = objectsOf(output('helm', 'template', 'slipway', CHART, '--values', `${CHART}/ci/all.yaml`));
    expect(all.get(policy)?.spec).toMatchObject({
      tier: 'Admin',
      priority: 100,
      subject: { pods: { podSelector: { matchLabels: { 'slipway.egress': 'proxy' } } } },
      egress: [
        {
          action: 'Pass',
          to: [{ pods: { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'slipway-egress' } } } }],
        },
        { action: 'Deny', to: [{ networks: ['0.0.0.0/0', '::/0'] }] },
      ],
    });
  });

  it('refuses values that it does not know', () => {
    const { status, stderr } = spawnSync('helm', ['template', 'slipway', CHART, '--set', 'replicass=3'], {
      cwd: ROOT,
      encoding: 'utf8',
    });

    expect(status).not.toBe(0);
    expect(stderr).toContain('replicass');
  });
});
