import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonList } from '@slipway/common/json-access.js';
import { ApiServerError } from '../../../../common/kubernetes/api-server-error.js';
import type { ApiServer } from '../../../../common/kubernetes/api-server.js';
import { ObjectWatch } from '../../../../common/kubernetes/object-watch.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import { SandboxBackendError, SandboxBackendUnavailableError } from '../sandbox-backend.js';
import { type ObservedPod, type ObservedSandbox, readPod, readSandbox } from './observed-objects.js';
import type { ClusterSandbox } from './sandbox-facts.js';
import { SANDBOX_API, sandboxObjectName } from './sandbox-manifest.js';

/** Changes of an object come in groups, which listeners hear of once. */
const SETTLE_MS = 20;

/** The Sandboxes and pods of an installation, as the cluster has them now and as the watch last reported them. */
export class ClusterObjects {
  readonly #watches: { sandboxes: ObjectWatch<ObservedSandbox>; pods: ObjectWatch<ObservedPod> };
  readonly #listeners = new Set<() => void>();
  #settling: NodeJS.Timeout | null = null;

  constructor(
    private readonly api: ApiServer,
    readonly namespace: string,
    private readonly instanceId: string,
  ) {
    const labelSelector = `${INSTANCE_LABEL}=${instanceId}`;
    const onChange = (): void => this.#notify();
    this.#watches = {
      sandboxes: new ObjectWatch(api, {
        path: this.sandboxesPath,
        labelSelector,
        read: readSandbox,
        onChange,
      }),
      pods: new ObjectWatch(api, { path: this.podsPath, labelSelector, read: readPod, onChange }),
    };
  }

  get sandboxesPath(): string {
    return `/apis/${SANDBOX_API}/namespaces/${this.namespace}/sandboxes`;
  }

  get podsPath(): string {
    return `/api/v1/namespaces/${this.namespace}/pods`;
  }

  get eventsPath(): string {
    return `/api/v1/namespaces/${this.namespace}/events`;
  }

  path(id: string): string {
    return `${this.sandboxesPath}/${sandboxObjectName(id)}`;
  }

  start(): void {
    this.#watches.sandboxes.start();
    this.#watches.pods.start();
  }

  async stop(): Promise<void> {
    if (this.#settling !== null) {
      clearTimeout(this.#settling);
    }
    await Promise.all([this.#watches.sandboxes.stop(), this.#watches.pods.stop()]);
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves at the next change from now on; the caller must wait for it or cancel it. */
  nextChange(signal?: AbortSignal): { within: (ms: number) => Promise<void>; cancel: () => void } {
    const changed = Promise.withResolvers<void>();
    const listener = (): void => changed.resolve();
    this.#listeners.add(listener);
    const cancel = (): void => void this.#listeners.delete(listener);
    return {
      cancel,
      within: async (ms) => {
        const timeout = new AbortController();
        const signals = [timeout.signal, ...(signal ? [signal] : [])];
        try {
          await Promise.race([changed.promise, delay(ms, undefined, { signal: AbortSignal.any(signals) })]);
        } finally {
          timeout.abort();
          cancel();
        }
      },
    };
  }

  /** Asks the cluster for a sandbox; null when none of ours has the id. */
  async find(id: string, signal?: AbortSignal, patienceMs?: number): Promise<ClusterSandbox | null> {
    const calling = { ...(signal && { signal }), ...(patienceMs !== undefined && { patienceMs }) };
    const labelSelector = `${INSTANCE_LABEL}=${this.instanceId},${SANDBOX_LABEL}=${id}`;
    const [object, pods] = await Promise.all([
      this.api.find(this.path(id), calling),
      this.api.call(this.podsPath, { query: { labelSelector }, ...calling }),
    ]);
    const sandbox = readSandbox(object);
    return sandbox === null || sandbox.instanceId !== this.instanceId
      ? null
      : {
          sandbox,
          pod: podOf(
            sandbox,
            jsonList(pods, 'items').flatMap((item) => readPod(item) ?? []),
          ),
        };
  }

  /** A pod as the watch last reported it; null when it is unknown. */
  knownPod(name: string): ObservedPod | null {
    return this.#watches.pods.known(name);
  }

  /** Changes members of a sandbox's object (a JSON merge patch). */
  async patch(id: string, body: object, signal?: AbortSignal, patienceMs?: number): Promise<unknown> {
    return await this.api.call(this.path(id), {
      method: 'PATCH',
      body,
      as: 'merge',
      ...(signal && { signal }),
      ...(patienceMs !== undefined && { patienceMs }),
    });
  }

  /** Every sandbox as the watch last reported it. Throws ApiServerError when the cluster cannot be asked. */
  async list(): Promise<ClusterSandbox[]> {
    const [sandboxes, pods] = await Promise.all([
      this.#watches.sandboxes.objects(),
      this.#watches.pods.objects(),
    ]);
    const byOwner = Map.groupBy(pods.values(), ({ owner }) => owner);
    return [...sandboxes.values()].map((sandbox) => ({
      sandbox,
      pod: podOf(sandbox, byOwner.get(sandbox.uid) ?? []),
    }));
  }

  #notify(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = null;
      this.#listeners.forEach((listener) => listener());
    }, SETTLE_MS).unref();
  }
}

function podOf({ uid }: ObservedSandbox, pods: readonly ObservedPod[]): ObservedPod | null {
  const own = pods.filter(({ owner }) => owner === uid);
  return own.find(({ isDeleting }) => !isDeleting) ?? own[0] ?? null;
}

/**
 * Calls the cluster.
 * @throws SandboxBackendError with `failure` and the reason; SandboxBackendUnavailableError without an answer
 */
export async function callCluster<T>(failure: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw clusterFailure(failure, error);
  }
}

/** What a failure of the API server means for the sandbox. Other errors are returned unchanged. */
export function clusterFailure(failure: string, error: unknown): unknown {
  if (!(error instanceof ApiServerError)) {
    return error;
  }
  const reason = reasonOf(error);
  return error.isTemporary
    ? new SandboxBackendUnavailableError(`${failure}: ${reason}`, { cause: error })
    : new SandboxBackendError(`${failure}: ${reason}`, { cause: error });
}

function reasonOf(error: ApiServerError): string {
  const { status } = error;
  const text = errorMessage(error);
  if (error.isTemporary) {
    return `the Kubernetes API server does not answer (${text}); it is asked again`;
  }
  switch (status) {
    case 401:
      return `the Kubernetes API server does not accept the credentials of KUBECONFIG (${text})`;
    case 403:
      return `the service's account lacks a right, or a quota of the namespace is used up (${text})`;
    default:
      return text;
  }
}
