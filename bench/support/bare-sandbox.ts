import { randomUUID } from 'node:crypto';
import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  Watch,
} from '@kubernetes/client-node';
import { jsonList, jsonNumber, jsonText } from '../../src/common/json-access.js';
import type { BareProgram } from './bare-programs.js';

const GROUP = { group: 'agents.x-k8s.io', version: 'v1beta1', plural: 'sandboxes' } as const;
const AGENT_USER = 10_001;
const TIMEOUT_MS = 120_000;

/** A namespace of its own for a measurement, in the cluster of `KUBECONFIG`. */
export class BenchNamespace {
  readonly name = `slipway-bench-${randomUUID().slice(0, 8)}`;
  readonly objects: CustomObjectsApi;
  readonly core: CoreV1Api;

  private constructor(readonly config: KubeConfig) {
    this.objects = config.makeApiClient(CustomObjectsApi);
    this.core = config.makeApiClient(CoreV1Api);
  }

  static async create(): Promise<BenchNamespace> {
    const config = new KubeConfig();
    config.loadFromDefault();
    const namespace = new BenchNamespace(config);
    await namespace.core.createNamespace({ body: { metadata: { name: namespace.name } } });
    return namespace;
  }

  async create(body: object): Promise<void> {
    await this.objects.createNamespacedCustomObject({ ...GROUP, namespace: this.name, body });
  }

  async patch(name: string, body: object): Promise<number> {
    const target = { ...GROUP, namespace: this.name, name, body };
    const options = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
    const patched: unknown = await this.objects.patchNamespacedCustomObject(target, options);
    return jsonNumber(patched, 'metadata', 'generation') ?? 0;
  }

  /** Waits until the controller says of a generation of a Sandbox that the condition holds. */
  async untilCondition(name: string, type: string, generation = 1): Promise<void> {
    const reached = Promise.withResolvers<void>();
    const path = `/apis/${GROUP.group}/${GROUP.version}/namespaces/${this.name}/${GROUP.plural}`;
    const watch = await new Watch(this.config).watch(
      path,
      { fieldSelector: `metadata.name=${name}` },
      (_phase, sandbox: unknown) => {
        const holds = jsonList(sandbox, 'status', 'conditions').some(
          (condition) =>
            jsonText(condition, 'type') === type &&
            jsonText(condition, 'status') === 'True' &&
            (jsonNumber(condition, 'observedGeneration') ?? 0) >= generation,
        );
        if (holds) {
          reached.resolve();
        }
      },
      (error: unknown) => reached.reject(new Error(`the watch of ${name} ended: ${String(error)}`)),
    );
    const timeout = setTimeout(() => reached.reject(new Error(`${name} is not ${type}`)), TIMEOUT_MS);
    try {
      await reached.promise;
    } finally {
      clearTimeout(timeout);
      watch.abort();
    }
  }

  async delete(name: string): Promise<void> {
    await this.objects.deleteNamespacedCustomObject({ ...GROUP, namespace: this.name, name });
  }

  async remove(): Promise<void> {
    await this.core.deleteNamespace({ name: this.name });
  }
}

/** A Sandbox of the same image with a volume, and nothing else that the service gives it. It is alive without a key. */
export class BareSandbox implements BareProgram {
  private readonly name = `bare-${randomUUID()}`;

  constructor(
    private readonly namespace: BenchNamespace,
    private readonly image: string,
    private readonly volumeSize: string,
  ) {}

  async start(): Promise<void> {
    await this.namespace.create(bareManifest(this.name, this.image, this.volumeSize));
    await this.namespace.untilCondition(this.name, 'Ready');
  }

  async stop(): Promise<void> {
    const generation = await this.namespace.patch(this.name, { spec: { operatingMode: 'Suspended' } });
    await this.namespace.untilCondition(this.name, 'Suspended', generation);
  }

  async restart(): Promise<void> {
    const generation = await this.namespace.patch(this.name, { spec: { operatingMode: 'Running' } });
    await this.namespace.untilCondition(this.name, 'Ready', generation);
  }

  async remove(): Promise<void> {
    await this.namespace.delete(this.name);
  }
}

function bareManifest(name: string, image: string, volumeSize: string): object {
  const requests = { cpu: '10m', memory: '32Mi' };
  return {
    apiVersion: `${GROUP.group}/${GROUP.version}`,
    kind: 'Sandbox',
    metadata: { name },
    spec: {
      podTemplate: {
        spec: {
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 10,
          securityContext: { fsGroup: AGENT_USER },
          containers: [
            {
              name: 'agent',
              image,
              imagePullPolicy: 'IfNotPresent',
              stdin: true,
              resources: { requests },
              readinessProbe: { httpGet: { path: '/alive', port: 8000 }, periodSeconds: 1 },
              volumeMounts: [{ name: 'files', mountPath: '/sandbox' }],
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: 'files' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: volumeSize } } },
        },
      ],
    },
  };
}
