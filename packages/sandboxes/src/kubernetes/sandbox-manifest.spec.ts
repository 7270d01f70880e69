import { describe, expect, it } from '@jest/globals';
import { randomBase62 } from '@slipway/common/identifiers.js';
import { sandboxLaunch } from '../../../../test/support/sandbox-launch.js';
import type { SandboxLaunch } from '../sandbox-backend.js';
import { podTemplate, sandboxManifest, sandboxObjectName } from './sandbox-manifest.js';

const OPTIONS = {
  instanceId: 'test',
  defaultImage: 'registry.example.com/agent:1',
  volumeSize: '10Gi',
  storageClass: null,
  runtimeClass: null,
  serviceAccount: null,
  podTemplate: {},
  cpu: 2,
  memoryMb: 4096,
  environment: {},
  graceSeconds: 10,
};

const LAUNCH = sandboxLaunch({
  id: 'AbCdEfGhIjKlMnOpQrStUv',
  sessionKey: 'the-session-key',
  workingDir: '/workspace/project',
});

function podOf(launch: Partial<SandboxLaunch> = {}, options: Partial<typeof OPTIONS> = {}) {
  return podTemplate({ ...LAUNCH, ...launch }, { ...OPTIONS, ...options });
}

describe('sandboxObjectName', () => {
  it('keeps ids apart that differ in case only', () => {
    const ids = [
      'aaaaaaaaaaaaaaaaaaaaaa',
      'Aaaaaaaaaaaaaaaaaaaaaa',
      ...Array.from({ length: 50 }, () => randomBase62(22)),
    ];
    const names = ids.map(sandboxObjectName);
    expect(new Set(names).size).toBe(ids.length);
    expect(names.every((name) => /^[a-z][a-z0-9-]{0,62}$/.test(name))).toBe(true);
  });
});

describe('sandboxManifest', () => {
  it('is a Sandbox of ours with a volume that outlives its pods', () => {
    const labels = { 'slipway.instance': 'test', 'slipway.sandbox-id': LAUNCH.id };
    expect(sandboxManifest(LAUNCH, { ...OPTIONS, storageClass: 'fast' })).toMatchObject({
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      metadata: { name: sandboxObjectName(LAUNCH.id), labels },
      spec: {
        operatingMode: 'Running',
        podTemplate: { metadata: { labels } },
        volumeClaimTemplates: [
          {
            metadata: { labels },
            spec: { storageClassName: 'fast', resources: { requests: { storage: '10Gi' } } },
          },
        ],
      },
    });
  });

  it('takes the volume and the account of the specification before those of the service', () => {
    const pod = { volumeSize: '50Gi', storageClass: 'slow', serviceAccount: 'puller', template: {} };
    const options = { ...OPTIONS, storageClass: 'fast', serviceAccount: 'other', template: {} };
    expect(sandboxManifest({ ...LAUNCH, pod }, options).spec).toMatchObject({
      podTemplate: { spec: { serviceAccountName: 'puller', automountServiceAccountToken: false } },
      volumeClaimTemplates: [
        { spec: { storageClassName: 'slow', resources: { requests: { storage: '50Gi' } } } },
      ],
    });
    const silent = { volumeSize: null, storageClass: null, serviceAccount: null, template: {} };
    expect(sandboxManifest({ ...LAUNCH, pod: silent }, options)).toEqual(sandboxManifest(LAUNCH, options));
  });

  it('has the session key of our own agent server nowhere', () => {
    expect(JSON.stringify(sandboxManifest(LAUNCH, OPTIONS))).not.toContain(LAUNCH.sessionKey);
  });

  it('gives the stock agent server its key in the variable where it looks for it', () => {
    const launch: SandboxLaunch = {
      ...LAUNCH,
      program: { kind: 'image', image: 'stock:1', args: [] },
      workingDir: 'project',
    };
    expect(podTemplate(launch, OPTIONS).spec).toMatchObject({
      containers: [
        {
          image: 'stock:1',
          terminationMessagePath: '/root/termination-log',
          env: expect.arrayContaining([{ name: 'OH_SESSION_API_KEYS_0', value: LAUNCH.sessionKey }]),
        },
      ],
    });
    expect(JSON.stringify(podTemplate(launch, OPTIONS))).not.toContain('"stdin"');
  });
});

describe('podTemplate', () => {
  it('has no more rights than it needs', () => {
    const { spec } = podOf();
    expect(spec).toMatchObject({
      restartPolicy: 'Never',
      shareProcessNamespace: true,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 10,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 10_001,
        fsGroup: 10_001,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          image: 'registry.example.com/agent:1',
          imagePullPolicy: 'IfNotPresent',
          stdin: true,
          stdinOnce: true,
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            privileged: false,
            readOnlyRootFilesystem: true,
            runAsNonRoot: true,
          },
          readinessProbe: { httpGet: { path: '/alive', port: 8000 }, periodSeconds: 1 },
        },
      ],
      volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '2048Mi' } }],
    });
    expect(spec).not.toHaveProperty('initContainers');
    expect(spec).not.toHaveProperty('runtimeClassName');
    expect(spec).not.toHaveProperty('serviceAccountName');
  });

  it.each([
    [{}, { limits: { cpu: '2000m', memory: '4096Mi' }, requests: { cpu: '100m', memory: '256Mi' } }],
    [
      { cpu: 0.1, memoryMb: 100 },
      { limits: { cpu: '100m', memory: '100Mi' }, requests: { cpu: '10m', memory: '7Mi' } },
    ],
  ])('limits %j', (launch, resources) => {
    expect(podOf(launch).spec).toMatchObject({ containers: [{ resources }] });
  });

  it('takes the runtime of the specification before that of the service', () => {
    expect(podOf({ runtime: 'kata' }, {}).spec).toMatchObject({ runtimeClassName: 'kata' });
  });

  it('copies our agent server into another image, for a user who may start it and not read it', () => {
    const { spec } = podOf({ program: { kind: 'native', image: 'java:21' } });
    expect(spec).toMatchObject({
      initContainers: [
        {
          image: 'registry.example.com/agent:1',
          securityContext: { runAsGroup: 10_002, runAsNonRoot: true },
        },
      ],
      containers: [
        {
          image: 'java:21',
          command: expect.arrayContaining(['/opt/slipway/bin/node', '--secrets-stdin']),
          volumeMounts: expect.arrayContaining([
            { name: 'agent-server', mountPath: '/opt/slipway', readOnly: true },
          ]),
        },
      ],
    });
  });

  it('names the variables that are not of the image, for our own agent server', () => {
    const { spec } = podOf({ env: { REGION: 'north' }, ports: { WORKER_1: 8011 } });
    const value = 'REGION,HOME,SLIPWAY_WORKSPACE_NAME,WORKER_1,LISTEN_HOST,SLIPWAY_TOOL_VARIABLES';
    expect(spec).toMatchObject({
      containers: [{ env: expect.arrayContaining([{ name: 'SLIPWAY_SERVICE_VARIABLES', value }]) }],
    });
    const stock = podOf({ program: { kind: 'image', image: 'stock:1', args: [] }, workingDir: 'project' });
    expect(JSON.stringify(stock)).not.toContain('SLIPWAY_SERVICE_VARIABLES');
  });

  it('passes values on as they are, references of Kubernetes included', () => {
    const { spec } = podOf({ env: { PRICE: '$(HOME) $$1' }, ports: { WORKER_1: 8011 } });
    expect(spec).toMatchObject({
      containers: [
        {
          env: expect.arrayContaining([
            { name: 'PRICE', value: '$$(HOME) $$$$1' },
            { name: 'WORKER_1', value: '8011' },
            { name: 'LISTEN_HOST', value: '0.0.0.0' },
          ]),
          ports: [{ containerPort: 8000 }, { containerPort: 8011 }],
        },
      ],
    });
  });

  const egress = { port: 3180, credential: 'a.secret', authority: 'PEM', isOnlyWay: true };
  const proxied = { environment: { HTTPS_PROXY: 'http://proxy.corp:3128' } };

  it('has a pod with rules know the address of the proxy, and no name server', () => {
    const dns = { dnsPolicy: 'ClusterFirst', dnsConfig: { nameservers: ['10.0.0.10'] } };
    const { metadata, spec } = podTemplate(
      { ...LAUNCH, env: { https_proxy: 'http://other' }, egress, proxyHost: '10.9.0.7' },
      {
        ...OPTIONS,
        ...proxied,
        podTemplate: { metadata: { labels: { 'slipway.egress': 'any' } }, spec: dns },
      },
    );
    expect(metadata.labels).toMatchObject({ 'slipway.egress': 'proxy' });
    expect(spec).toMatchObject({ dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } });
    const address = `http://${LAUNCH.id}:a.secret@10.9.0.7:3180`;
    expect(spec).toMatchObject({
      containers: [
        {
          env: expect.arrayContaining([
            { name: 'HTTPS_PROXY', value: address },
            { name: 'https_proxy', value: address },
            { name: 'NO_PROXY', value: 'localhost,127.0.0.1,::1,127.0.0.0/8' },
            { name: 'SLIPWAY_AUTHORITY_1000', value: 'PEM' },
          ]),
        },
      ],
    });
    expect(JSON.stringify(spec)).not.toContain('proxy.corp');
  });

  it('has a stock image trust the authority, by a file that the image of ours writes and the usual variables', () => {
    const stock = {
      ...LAUNCH,
      program: { kind: 'image', image: 'stock:1', args: [] },
      workingDir: 'p',
    } as const;
    const launch = { ...stock, program: { ...stock.program, args: [] }, env: { CURL_CA_BUNDLE: '/own.pem' } };
    const { spec } = podTemplate({ ...launch, egress, proxyHost: '10.9.0.7' }, OPTIONS);
    const file = '/etc/slipway-authorities/bundle.pem';
    expect(spec).toMatchObject({
      initContainers: [
        { name: 'authorities', image: OPTIONS.defaultImage, env: [{ name: 'AUTHORITY', value: 'PEM' }] },
      ],
      containers: [
        {
          env: expect.arrayContaining([
            { name: 'GIT_SSL_CAINFO', value: file },
            { name: 'NODE_EXTRA_CA_CERTS', value: file },
            { name: 'CURL_CA_BUNDLE', value: '/own.pem' },
          ]),
          volumeMounts: expect.arrayContaining([
            { name: 'authorities', mountPath: '/etc/slipway-authorities', readOnly: true },
          ]),
        },
      ],
      volumes: expect.arrayContaining([{ name: 'authorities', emptyDir: {} }]),
    });
    const unopened = podTemplate(
      { ...launch, egress: { ...egress, authority: null }, proxyHost: 'x' },
      OPTIONS,
    );
    expect(unopened.spec).not.toHaveProperty('initContainers');
  });

  it('leaves names and network to a pod whose credentials alone are outside', () => {
    const { metadata, spec } = podTemplate(
      { ...LAUNCH, egress: { ...egress, isOnlyWay: false }, proxyHost: '[fd00::7]' },
      OPTIONS,
    );
    expect(metadata.labels).toEqual({ 'slipway.instance': 'test', 'slipway.sandbox-id': LAUNCH.id });
    expect(spec).not.toHaveProperty('dnsPolicy');
    expect(JSON.stringify(spec)).toContain(`http://${LAUNCH.id}:a.secret@[fd00::7]:3180`);
  });

  it('refuses a command, and a folder that is not kept', () => {
    expect(() => podOf({ program: { kind: 'command', command: 'x', args: [] } })).toThrow(
      'it needs an image',
    );
    expect(() => podOf({ workingDir: '/etc' })).toThrow('is not kept');
  });
});

describe('the template of the operator', () => {
  const podTemplate = {
    metadata: {
      labels: { team: 'platform', 'slipway.sandbox-id': 'other' },
      annotations: { cost: 'agents' },
    },
    spec: {
      nodeSelector: { pool: 'agents' },
      tolerations: [{ key: 'agents', operator: 'Exists' }],
      securityContext: { runAsUser: null, fsGroup: null },
    },
  };
  const template = { metadata: { labels: { team: 'research' } }, spec: { nodeSelector: { gpu: 'yes' } } };
  const launch = { ...LAUNCH, pod: { volumeSize: null, storageClass: null, serviceAccount: null, template } };

  it('is added to all objects of a sandbox, that of its specification last', () => {
    const { metadata, spec } = sandboxManifest(launch, { ...OPTIONS, podTemplate });
    const labels = { team: 'research', 'slipway.instance': 'test', 'slipway.sandbox-id': LAUNCH.id };
    expect(metadata.labels).toEqual(labels);
    expect(spec.volumeClaimTemplates[0]?.metadata?.labels).toEqual(labels);
    expect(spec.podTemplate.metadata).toEqual({
      labels,
      annotations: { cost: 'agents', 'slipway.ports': '{}' },
    });
    expect(spec.podTemplate.spec).toMatchObject({
      nodeSelector: { pool: 'agents', gpu: 'yes' },
      tolerations: [{ key: 'agents', operator: 'Exists' }],
    });
  });

  it('takes away what a cluster sets itself', () => {
    const { spec } = podOf({ program: { kind: 'native', image: 'java:21' } }, { podTemplate });
    expect(spec['securityContext']).toMatchObject({ runAsNonRoot: true, runAsGroup: 10_001 });
    expect(JSON.stringify(spec)).not.toMatch(/"(runAsUser|fsGroup)"/);
  });
});
