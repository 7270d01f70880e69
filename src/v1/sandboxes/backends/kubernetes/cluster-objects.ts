import { setTimeout as delay } from 'node:timers/promises';
import { jsonList } from '@slipway/common/json-access.js';
import { ApiServerError } from '../../../../common/kubernetes/api-server-error.js';
import type { ApiCall, ApiServer } from '../../../../common/kubernetes/api-server.js';
import { ObjectWatch } from '../../../../common/kubernetes/object-watch.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import { SandboxBackendError, SandboxBackendUnavailableError } from '../sandbox-backend.js';
import {
  type ObservedPod,
  type ObservedSandbox,
  readPod,
  readSandbox,
  type ClusterSandbox,
} from './sandbox-facts.js';
import { SANDBOX_API, sandboxObjectName } from './sandbox-manifest.js';

/** Changes of an object come in groups, which listeners hear of once. */
const SETTLE_MS = 20;

type Asking = Pick<ApiCall, 'signal' | 'patienceMs'>;

/** The Sandboxes and pods of an installation, as the cluster has them now and as the watch last reported them. */
export class ClusterObjects {
  readonly sandboxesPath: string;
  readonly podsPath: string;
  readonly eventsPath: string;
  readonly #selector: string;
  readonly #sandboxes: ObjectWatch<ObservedSandbox>;
  readonly #pods: ObjectWatch<ObservedPod>;
  #change = new AbortController();
  #settling: NodeJS.Timeout | null = null;

  constructor(
    private readonly api: ApiServer,
    readonly namespace: string,
    private readonly instanceId: string,
    private readonly listener: () => void,
  ) {
    this.sandboxesPath = `/apis/${SANDBOX_API}/namespaces/${namespace}/sandboxes`;
    this.podsPath = `/api/v1/namespaces/${namespace}/pods`;
    this.eventsPath = `/api/v1/namespaces/${namespace}/events`;
    this.#selector = `${INSTANCE_LABEL}=${instanceId}`;
    const watched = { labelSelector: this.#selector, onChange: () => this.#notify() };
    this.#sandboxes = new ObjectWatch(api, { path: this.sandboxesPath, read: readSandbox, ...watched });
    this.#pods = new ObjectWatch(api, { path: this.podsPath, read: readPod, ...watched });
  }

  path(id: string): string {
    return `${this.sandboxesPath}/${sandboxObjectName(id)}`;
  }

  start(): void {
    this.#sandboxes.start();
    this.#pods.start();
  }

  async stop(): Promise<void> {
    if (this.#settling !== null) {
      clearTimeout(this.#settling);
    }
    await Promise.all([this.#sandboxes.stop(), this.#pods.stop()]);
  }

  /** Aborts at the next change from now on. */
  get nextChange(): AbortSignal {
    return this.#change.signal;
  }

  /** Asks the cluster for a sandbox; null when none of ours has the id. */
  async find(id: string, asking: Asking = {}): Promise<ClusterSandbox | null> {
    const labelSelector = `${this.#selector},${SANDBOX_LABEL}=${id}`;
    const [object, pods] = await Promise.all([
      this.api.find(this.path(id), asking),
      this.api.call(this.podsPath, { query: { labelSelector }, ...asking }),
    ]);
    const sandbox = readSandbox(object);
    return sandbox?.instanceId === this.instanceId
      ? withPod(
          sandbox,
          jsonList(pods, 'items').flatMap((item) => readPod(item) ?? []),
        )
      : null;
  }

  /** A pod as the watch last reported it; null when it is unknown. */
  knownPod(name: string): ObservedPod | null {
    return this.#pods.known(name);
  }

  async patch(id: string, body: object, asking: Asking = {}): Promise<void> {
    await this.api.call(this.path(id), { method: 'PATCH', body, as: 'merge', ...asking });
  }

  /** Every sandbox as the watch last reported it. Throws ApiServerError when the cluster cannot be asked. */
  async list(): Promise<ClusterSandbox[]> {
    const [sandboxes, pods] = await Promise.all([this.#sandboxes.objects(), this.#pods.objects()]);
    const byOwner = Map.groupBy(pods.values(), ({ owner }) => owner);
    return [...sandboxes.values()].map((sandbox) => withPod(sandbox, byOwner.get(sandbox.uid) ?? []));
  }

  #notify(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = null;
      this.#change.abort();
      this.#change = new AbortController();
      this.listener();
    }, SETTLE_MS).unref();
  }
}

/** Waits at most this long for a change. @throws the signal's reason */
export async function changeWithin(ms: number, change: AbortSignal, signal?: AbortSignal): Promise<void> {
  const either = AbortSignal.any(signal === undefined ? [change] : [change, signal]);
  await delay(ms, undefined, { signal: either }).catch(() => signal?.throwIfAborted());
}

function withPod(sandbox: ObservedSandbox, pods: readonly ObservedPod[]): ClusterSandbox {
  const own = pods.filter(({ owner }) => owner === sandbox.uid);
  return { sandbox, pod: own.find(({ isDeleting }) => !isDeleting) ?? own[0] ?? null };
}

/** @throws SandboxBackendError with `failure` and the reason; SandboxBackendUnavailableError without an answer */
export async function callCluster<T>(failure: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw clusterFailure(failure, error);
  }
}

/** What a failure of the API server means for the sandbox. Other errors are returned unchanged. */
export function clusterFailure(failure: string, cause: unknown): unknown {
  if (!(cause instanceof ApiServerError)) {
    return cause;
  }
  const Failure = cause.isTemporary ? SandboxBackendUnavailableError : SandboxBackendError;
  return new Failure(`${failure}: ${reasonOf(cause)}`, { cause });
}

function reasonOf({ isTemporary, status, message }: ApiServerError): string {
  if (isTemporary) {
    return `the Kubernetes API server does not answer (${message}); it is asked again`;
  }
  switch (status) {
    case 401:
      return `the Kubernetes API server does not accept the credentials of KUBECONFIG (${message})`;
    case 403:
      return `the service's account lacks a right, or a quota of the namespace is used up (${message})`;
    default:
      return message;
  }
}
