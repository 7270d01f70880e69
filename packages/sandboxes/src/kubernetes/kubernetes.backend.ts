import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { KeyedLimit } from '@slipway/common/async.js';
import { ApiServerError, ApiServer } from './api-server.js';
import { connectToPod } from './pod-socket.js';
import { explainIncompatibleImage, lastLines, sandboxLayout } from '../container-layout.js';
import {
  type BackendSweep,
  type DiskSpace,
  type PreparationLine,
  type ProgramLaunch,
  requireMayStop,
  SandboxBackend,
  SandboxBackendError,
  SandboxBackendUnavailableError,
  type SandboxFacts,
  type SandboxLaunch,
  type WarmStarts,
  type WarmTemplate,
  type PodPort,
} from '../sandbox-backend.js';
import {
  callCluster,
  changeWithin,
  clusterFailure,
  ClusterObjects,
  missingRights,
  remainder,
} from './cluster-objects.js';
import { DEFAULT_NAMESPACE, type KubernetesBackendOptions } from './kubernetes.options.js';
import { NO_PROXY, PodNetwork } from './pod-network.js';
import { PodStart } from './pod-start.js';
import {
  type ClusterSandbox,
  hasPodEnded,
  isReplaced,
  isSuspended,
  type PodReach,
  sandboxFacts,
} from './sandbox-facts.js';
import {
  POD_ANNOTATION,
  type PodLaunch,
  podTemplate,
  sandboxManifest,
  SANDBOX_API,
  wayOut,
} from './sandbox-manifest.js';

const LOG_LINES = 50;
const LOG_CHARACTERS = 4000;
/** A line may be of any length, so bytes are bounded too. */
const LOG_BYTES = 256 * 1024;
/** The syntax of label values: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ */
const LABEL_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
/** A pod may use its grace time, and a volume takes some time to be released. */
const END_DEADLINE_MS = 90_000;
const LOOK_AGAIN_MS = 1_000;
/** A start repeats its requests for this long before its worker begins again. */
const PATIENCE_MS = 20_000;
const MAX_LOST_PODS = 3;

/** Objects of kubernetes-sigs/agent-sandbox, whose controller makes the pods. Any replica works on any sandbox. */
export class KubernetesSandboxBackend extends SandboxBackend {
  readonly kind = 'kubernetes';
  readonly isolation = 'container';
  /** Warm Sandboxes have the same objects and volumes as others, so that a claim changes nothing of them. */
  override readonly warm: WarmStarts = {
    fingerprint: async (template) => this.fingerprint(template),
    start: async (launch, signal) =>
      await this.queue.run(launch.id, () => this.run({ ...launch, sessionKey: null }, signal, 'create')),
  };

  /** Ignores `reach`: in a rolling restart a replica with another setting may have stored the address. */
  override readonly connect = async (port: PodPort): Promise<Socket> =>
    await connectToPod(this.tunnels, port);

  private readonly options: KubernetesBackendOptions;
  private readonly api: ApiServer;
  /** Separate, because a tunnel to a pod that has ended is no outage of the API server. */
  private readonly tunnels: ApiServer;
  private readonly queue = new KeyedLimit(1);
  private readonly listeners: (() => void)[] = [];
  private cluster: ClusterObjects | null = null;
  private kept: PodNetwork | null = null;

  constructor(options: KubernetesBackendOptions) {
    super();
    this.options = options;
    this.api = new ApiServer(options.kubeconfig);
    this.tunnels = new ApiServer(options.kubeconfig);
  }

  override proxyObstacle(): string | null {
    return this.options.egress === null ? NO_PROXY : null;
  }

  override async prepare(): Promise<PreparationLine[]> {
    const { instanceId, reach, defaultImage } = this.options;
    if (!LABEL_VALUE.test(instanceId)) {
      throw new SandboxBackendError(
        `INSTANCE_ID: ${instanceId} must end with a letter or digit, since it is the value of a label in Kubernetes`,
      );
    }
    const objects = this.objects;
    const missing = await missingRights(this.api, objects.namespace, reach);
    await callCluster(
      missing ??
        `the cluster has no ${SANDBOX_API}, or it may not be used (install kubernetes-sigs/agent-sandbox 0.5 or later)`,
      () => this.api.call(objects.sandboxesPath, { query: { limit: 1 } }),
    );
    objects.start();
    return [
      {
        level: 'log',
        text: `sandboxes are pods in the namespace ${objects.namespace} of ${this.api.address}, reached ${reach === 'pod' ? 'at their addresses' : 'through the API server'}; their image is ${defaultImage}`,
      },
      ...(missing === null ? [] : [{ level: 'warn' as const, text: missing }]),
      ...(await this.network.policies.keep()),
    ];
  }

  override async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.queue.run(launch.id, () => this.runUntilAborted(launch, signal, 'create'));
  }

  override async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.queue.run(launch.id, () => this.runUntilAborted(launch, signal, 'require'));
  }

  override async inspect(id: string): Promise<SandboxFacts> {
    const found = await this.find(id);
    return found === null
      ? { id, state: 'missing', address: null, ports: {}, exit: null, createdAt: null }
      : sandboxFacts(found, this.reach);
  }

  override async logTail(id: string): Promise<string> {
    const found = await this.find(id);
    if (!found?.pod) {
      return '';
    }
    const { name, container } = found.pod;
    const log = await callCluster('the output of the sandbox cannot be read', () =>
      this.readLog(`${this.objects.podsPath}/${name}/log`, container.name),
    );
    const said =
      container.state === 'terminated' && container.reason !== 'Error' ? (container.message ?? '') : '';
    const text = lastLines(`${log}${said}`, LOG_CHARACTERS);
    const explanation = hasPodEnded(found.pod) ? explainIncompatibleImage(text, 'of this sandbox') : null;
    return explanation === null ? text : `${text}\n${explanation}\n`;
  }

  override async pause(id: string, mayStop?: () => boolean): Promise<void> {
    await this.queue.run(id, async () => {
      const found = await this.find(id);
      if (found !== null) {
        requireMayStop(mayStop);
        await callCluster('the sandbox cannot be stopped', () => this.suspend(found));
      }
    });
  }

  override async remove(id: string): Promise<void> {
    await this.queue.run(id, async () => {
      const found = await this.find(id);
      if (found === null) {
        return;
      }
      await callCluster('the sandbox cannot be removed', async () => {
        // Foreground: the pod and the volume are gone before the object is.
        const body = { propagationPolicy: 'Foreground', preconditions: { uid: found.sandbox.uid } };
        await this.api.find(this.objects.path(id), { method: 'DELETE', body });
        await this.until(id, (left) => left === null);
      });
    });
  }

  override async list(): Promise<SandboxFacts[]> {
    const found = await callCluster('the sandboxes cannot be listed', () => this.objects.list());
    return found.map((each) => sandboxFacts(each, this.reach));
  }

  /** Each volume is the cluster's and has the size that was asked for. */
  override async disk(): Promise<DiskSpace | null> {
    return null;
  }

  override async sweep(): Promise<BackendSweep> {
    await this.kept?.policies.follow();
    return { leftovers: 0, notices: [] };
  }

  override onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  override async disconnect(): Promise<void> {
    await this.cluster?.stop();
    await Promise.all([this.api.close(), this.tunnels.close()]);
  }

  /** An image that is rebuilt under its old name goes unnoticed: the nodes have it, not the API server. */
  private fingerprint(template: WarmTemplate): string | null {
    if (template.program.kind !== 'native') {
      return null;
    }
    const launch = { ...template, egress: undefined, id: 'any', sessionKey: null };
    return hash('sha256', JSON.stringify([template, sandboxManifest(launch, this.options)]));
  }

  /** An aborted start throws the reason of the abort, unless the last error says more. */
  private async runUntilAborted(
    launch: SandboxLaunch,
    signal: AbortSignal,
    missing: 'create' | 'require',
  ): Promise<void> {
    try {
      await this.run(launch, signal, missing);
    } catch (error) {
      if (!(error instanceof SandboxBackendError)) {
        signal.throwIfAborted();
      }
      throw error;
    }
  }

  private async run(
    launch: ProgramLaunch,
    signal: AbortSignal,
    missing: 'create' | 'require',
  ): Promise<void> {
    signal.throwIfAborted();
    const { image } = sandboxLayout(launch, this.options.defaultImage);
    if (launch.network !== null) {
      launch.onShortfall?.(
        `The network ${launch.network} of the specification has no effect: pods have the cluster's.`,
      );
    }
    const { nodeWaitMs } = this.options;
    const tools = { api: this.api, objects: this.objects, reach: this.reach, nodeWaitMs };
    await callCluster('the sandbox cannot be started', async () => {
      const placed = await this.network.place(launch);
      let running = await this.ensureRunning(placed, signal, missing);
      for (let lost = 0; ; lost++) {
        const start = new PodStart(launch, image, tools, signal);
        if ((await start.follow(running)) === 'over' || lost === MAX_LOST_PODS) {
          return;
        }
        running = await this.ensureRunning(placed, signal, 'require');
      }
    });
  }

  /** Creates the object, or has the controller start it again. Returns the sandbox only if it runs already. */
  private async ensureRunning(
    launch: PodLaunch,
    signal: AbortSignal,
    missing: 'create' | 'require',
  ): Promise<ClusterSandbox | null> {
    const { id } = launch;
    const asking = { signal, patienceMs: PATIENCE_MS };
    const found = await this.objects.find(id, asking);
    if (found === null || found.sandbox.isDeleting) {
      if (missing === 'require') {
        throw new SandboxBackendError(
          'the files of this sandbox are gone: the cluster has no Sandbox of ours for it',
        );
      }
      if (found !== null) {
        await this.until(id, (left) => left === null, signal);
      }
      await this.create(launch, asking);
      return null;
    }
    const isRunning =
      found.sandbox.mode === 'Running' && !isReplaced(found) && !(found.pod && hasPodEnded(found.pod));
    const value = podTemplate(launch, this.options);
    // Rules may have come or gone, or the proxy moved, since an interrupted start has made it or since it is kept warm.
    if (isRunning && found.sandbox.wayOut === wayOut(value)) {
      return found;
    }
    // The controller replaces a failed pod only after the sandbox was suspended.
    await this.suspend(found, signal);
    // Whole, so that nothing stays of the template of an earlier start.
    await this.objects.patch(id, [{ op: 'replace', path: '/spec/podTemplate', value }], asking);
    const resumed = {
      metadata: { annotations: { [POD_ANNOTATION]: null } },
      spec: { operatingMode: 'Running' },
    };
    await this.objects.patch(id, resumed, asking);
    return null;
  }

  private async create(
    launch: PodLaunch,
    asking: { signal: AbortSignal; patienceMs: number },
  ): Promise<void> {
    try {
      const body = sandboxManifest(launch, this.options);
      await this.api.call(this.objects.sandboxesPath, { method: 'POST', body, ...asking });
    } catch (error) {
      // An earlier try of this request may have arrived although its response was lost.
      if (!(error instanceof ApiServerError) || error.status !== 409 || error.reason !== 'AlreadyExists') {
        throw error;
      }
      if ((await this.objects.find(launch.id, asking)) === null) {
        throw new SandboxBackendError('the Sandbox with its name belongs to another installation', {
          cause: error,
        });
      }
    }
  }

  private async suspend({ sandbox, pod }: ClusterSandbox, signal?: AbortSignal): Promise<void> {
    if (isSuspended({ sandbox, pod })) {
      return;
    }
    if (sandbox.mode !== 'Suspended') {
      await this.objects.patch(sandbox.sandboxId, { spec: { operatingMode: 'Suspended' } }, { signal });
    }
    await this.until(sandbox.sandboxId, isSuspended, signal);
  }

  private async until(
    id: string,
    isOver: (found: ClusterSandbox | null) => boolean,
    signal?: AbortSignal,
  ): Promise<void> {
    const endsAt = performance.now() + END_DEADLINE_MS;
    for (;;) {
      const change = this.objects.nextChange;
      const found = await this.objects.find(id, { signal });
      if (isOver(found)) {
        return;
      }
      if (performance.now() > endsAt) {
        throw new SandboxBackendUnavailableError(remainder(found, this.objects.namespace, END_DEADLINE_MS));
      }
      await changeWithin(LOOK_AGAIN_MS, change, signal);
    }
  }

  private async readLog(path: string, container: string): Promise<string> {
    try {
      return await this.api.text(path, {
        query: { container, tailLines: LOG_LINES, limitBytes: LOG_BYTES },
      });
    } catch (error) {
      // 400: the container has not started; 404: the pod is gone.
      if (error instanceof ApiServerError && (error.status === 400 || error.status === 404)) {
        return '';
      }
      throw error;
    }
  }

  private async find(id: string): Promise<ClusterSandbox | null> {
    return await callCluster('the sandbox cannot be inspected', () => this.objects.find(id));
  }

  private get reach(): PodReach {
    return { by: this.options.reach, namespace: this.objects.namespace };
  }

  /** Made late, because the namespace may be that of the service's own pod. */
  private get objects(): ClusterObjects {
    this.cluster ??= new ClusterObjects(this.api, this.namespace(), this.options.instanceId, () =>
      this.listeners.forEach((listener) => listener()),
    );
    return this.cluster;
  }

  private get network(): PodNetwork {
    this.kept ??= new PodNetwork(this.api, this.objects, this.options);
    return this.kept;
  }

  private namespace(): string {
    const { kubeconfig, namespace } = this.options;
    try {
      const own = kubeconfig === null ? this.api.ownNamespace : null;
      return namespace ?? own ?? DEFAULT_NAMESPACE;
    } catch (error) {
      throw clusterFailure('sandboxes cannot run', error);
    }
  }
}
