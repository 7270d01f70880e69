import { describe } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ApiServer } from './api-server.js';
import { connectToPod } from './pod-socket.js';
import { connectPodsWith } from '../sandbox-connection.js';
import { KubernetesSandboxBackend } from './kubernetes.backend.js';
import type { KubernetesBackendOptions } from './kubernetes.options.js';
import { sandboxObjectName } from './sandbox-manifest.js';
import type { SandboxBackend, SandboxLaunch } from '../sandbox-backend.js';
import { KUBERNETES_OPTIONS } from '../../../../test/support/kubernetes-options.js';
import { sandboxLaunch } from '../../../../test/support/sandbox-launch.js';
import type { SandboxBackendHarness, SandboxPromises } from '../sandbox-backend.harness.js';

/** The cluster that `npm run test:kubernetes` has found; without it these tests are skipped. */
export const KUBECONFIG = process.env['SLIPWAY_TEST_KUBECONFIG'] ?? '';
export const describeInCluster = KUBECONFIG === '' ? describe.skip : describe;
/** The image of `npm run image:agent-server`, as the nodes know it. */
export const AGENT_IMAGE = process.env['SLIPWAY_TEST_KUBERNETES_IMAGE'] ?? 'slipway-agent-server:trial';

/** What pods promise, however they are reached. */
export const PROMISES: SandboxPromises = { isolated: true, samePaths: true };

/** Ends before the agent server does anything. */
const BROKEN = '--import=data:text/javascript,console.log(%22it%20is%20broken%22);process.exit(7)';

/** Sandboxes of an installation of its own, in a namespace of its own that lets in only pods without rights. */
export class KubernetesHarness implements SandboxBackendHarness {
  readonly api = new ApiServer(KUBECONFIG);
  readonly instanceId = `test-${randomBytes(6).toString('hex')}`;
  backend: KubernetesSandboxBackend;
  /** The image that our own agent server is launched in; null: the backend's default. */
  image: string | null = null;
  private readonly options: Partial<KubernetesBackendOptions>;
  private readonly folder: string;
  private readonly backends: KubernetesSandboxBackend[] = [];

  private constructor(folder: string, options: Partial<KubernetesBackendOptions>) {
    this.folder = folder;
    this.options = options;
    this.backend = this.another();
    connectPodsWith((port) => connectToPod(this.api, port));
  }

  static async make(options: Partial<KubernetesBackendOptions> = {}): Promise<KubernetesHarness> {
    const folder = await mkdtemp(path.join(tmpdir(), 'kubernetes-backend-'));
    const harness = new KubernetesHarness(folder, options);
    await writeFile(harness.hidden.file, harness.hidden.text);
    await harness.api.call('/api/v1/namespaces', {
      method: 'POST',
      body: {
        metadata: {
          name: harness.namespace,
          labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
        },
      },
    });
    await harness.backend.prepare();
    return harness;
  }

  get namespace(): string {
    return `slipway-${this.instanceId}`;
  }

  get hidden() {
    return { file: path.join(this.folder, 'hidden'), text: 'not for tools' };
  }

  another(options: Partial<KubernetesBackendOptions> = {}): KubernetesSandboxBackend {
    const backend = new KubernetesSandboxBackend({
      ...KUBERNETES_OPTIONS,
      instanceId: this.instanceId,
      kubeconfig: KUBECONFIG,
      namespace: this.namespace,
      defaultImage: AGENT_IMAGE,
      callbackUrl: () => 'http://127.0.0.1:3000/api/v1/webhooks',
      nodeWaitMs: 4_000,
      ...this.options,
      ...options,
    });
    this.backends.push(backend);
    return backend;
  }

  async reopen(): Promise<SandboxBackend> {
    this.backend = this.another();
    await this.backend.prepare();
    return this.backend;
  }

  launch(changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
    return sandboxLaunch({ program: { kind: 'native', image: this.image }, ...changes });
  }

  brokenLaunch(): SandboxLaunch {
    return this.imageLaunch(AGENT_IMAGE, { env: { NODE_OPTIONS: BROKEN } });
  }

  imageLaunch(image: string, changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
    return this.launch({ program: { kind: 'image', image, args: [] }, workingDir: 'project', ...changes });
  }

  /** The pod of a sandbox, as the cluster has it. */
  podPath(id: string): string {
    return `/api/v1/namespaces/${this.namespace}/pods/${sandboxObjectName(id)}`;
  }

  async close(): Promise<void> {
    await Promise.all(this.backends.map((backend) => backend.disconnect()));
    // Takes everything in it along, in its own time.
    await this.api.find(`/api/v1/namespaces/${this.namespace}`, { method: 'DELETE' });
    await this.api.close();
    await rm(this.folder, { recursive: true, maxRetries: 10 });
  }
}
