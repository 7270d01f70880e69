import { randomUUID } from 'node:crypto';
import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  Watch,
} from '@kubernetes/client-node';
import { jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import type { BareProgram } from './bare-programs.js';

/** Kinds of agent-sandbox, and of its extensions. */
const KINDS = {
  sandboxes: 'agents.x-k8s.io',
  sandboxtemplates: 'extensions.agents.x-k8s.io',
  sandboxwarmpools: 'extensions.agents.x-k8s.io',
  sandboxclaims: 'extensions.agents.x-k8s.io',
} as const;
type Kind = keyof typeof KINDS;
const VERSION = 'v1beta1';
export const SANDBOX_API = `${KINDS.sandboxes}/${VERSION}`;
export const EXTENSIONS_API = `${KINDS.sandboxclaims}/${VERSION}`;
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

  async create(body: object, kind: Kind = 'sandboxes'): Promise<void> {
    await this.objects.createNamespacedCustomObject({ ...this.target(kind), body });
  }

  async patch(name: string, body: object): Promise<number> {
    const target = { ...this.target('sandboxes'), name, body };
    const options = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
    const patched: unknown = await this.objects.patchNamespacedCustomObject(target, options);
    return jsonNumber(patched, 'metadata', 'generation') ?? 0;
  }

  /** Waits until the controller says of a generation of an object that the condition holds. */
  async untilCondition(name: string, type: string, generation = 1, kind: Kind = 'sandboxes'): Promise<void> {
    await this.until(kind, name, type, (object) =>
      jsonList(object, 'status', 'conditions').some(
        (condition) =>
          jsonText(condition, 'type') === type &&
          jsonText(condition, 'status') === 'True' &&
          (jsonNumber(condition, 'observedGeneration') ?? 0) >= generation,
      ),
    );
  }

  /** Waits until an object is as wanted. */
  async until(kind: Kind, name: string, wanted: string, holds: (object: unknown) => boolean): Promise<void> {
    const endsAt = performance.now() + TIMEOUT_MS;
    // The client ends a watch on which nothing happens.
    while (!(await this.watch(kind, name, holds))) {
      if (performance.now() > endsAt) {
        throw new Error(`${name} is not ${wanted}`);
      }
    }
  }

  /** @returns whether it came to hold before the watch ended */
  private async watch(kind: Kind, name: string, holds: (object: unknown) => boolean): Promise<boolean> {
    const ended = Promise.withResolvers<boolean>();
    const watch = await new Watch(this.config).watch(
      `/apis/${KINDS[kind]}/${VERSION}/namespaces/${this.name}/${kind}`,
      { fieldSelector: `metadata.name=${name}` },
      (_phase, object: unknown) => (holds(object) ? ended.resolve(true) : undefined),
      () => ended.resolve(false),
    );
    try {
      return await ended.promise;
    } finally {
      watch.abort();
    }
  }

  async delete(name: string, kind: Kind = 'sandboxes'): Promise<void> {
    await this.objects.deleteNamespacedCustomObject({ ...this.target(kind), name });
  }

  async remove(): Promise<void> {
    await this.core.deleteNamespace({ name: this.name });
  }

  private target(kind: Kind) {
    return { group: KINDS[kind], version: VERSION, plural: kind, namespace: this.name };
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
  return {
    apiVersion: SANDBOX_API,
    kind: 'Sandbox',
    metadata: { name },
    spec: bareBlueprint(image, volumeSize),
  };
}

/** What a bare Sandbox and the template of a pool of them have in common. */
export function bareBlueprint(image: string, volumeSize: string): object {
  const requests = { cpu: '10m', memory: '32Mi' };
  return {
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
  };
}
