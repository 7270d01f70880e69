import { setTimeout as delay } from 'node:timers/promises';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { ApiServerError, type ApiCall, type ApiServer } from './api-server.js';
import { ObjectWatch } from './object-watch.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import { SandboxBackendError, SandboxBackendUnavailableError } from '../sandbox-backend.js';
import {
  type ObservedPod,
  type ObservedSandbox,
  readPod,
  readSandbox,
  type ClusterSandbox,
} from './sandbox-facts.js';
import { SANDBOX_API, SANDBOX_GROUP, sandboxObjectName } from './sandbox-manifest.js';

/** Changes of an object come in groups, which listeners hear of once. */
const SETTLE_MS = 20;
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

type Asking = Pick<ApiCall, 'signal' | 'patienceMs'>;

/** The Sandboxes and pods of an installation, as the cluster has them now and as the watch last reported them. */
export class ClusterObjects {
  readonly sandboxesPath: string;
  readonly podsPath: string;
  readonly eventsPath: string;
  private readonly selector: string;
  private readonly sandboxes: ObjectWatch<ObservedSandbox>;
  private readonly pods: ObjectWatch<ObservedPod>;
  private change = new AbortController();
  private settling: NodeJS.Timeout | null = null;

  constructor(
    private readonly api: ApiServer,
    readonly namespace: string,
    private readonly instanceId: string,
    private readonly listener: () => void,
  ) {
    this.sandboxesPath = `/apis/${SANDBOX_API}/namespaces/${namespace}/sandboxes`;
    this.podsPath = `/api/v1/namespaces/${namespace}/pods`;
    this.eventsPath = `/api/v1/namespaces/${namespace}/events`;
    this.selector = `${INSTANCE_LABEL}=${instanceId}`;
    const watched = { labelSelector: this.selector, onChange: () => this.notify() };
    this.sandboxes = new ObjectWatch(api, { path: this.sandboxesPath, read: readSandbox, ...watched });
    this.pods = new ObjectWatch(api, { path: this.podsPath, read: readPod, ...watched });
  }

  path(id: string): string {
    return `${this.sandboxesPath}/${sandboxObjectName(id)}`;
  }

  start(): void {
    this.sandboxes.start();
    this.pods.start();
  }

  async stop(): Promise<void> {
    if (this.settling !== null) {
      clearTimeout(this.settling);
    }
    await Promise.all([this.sandboxes.stop(), this.pods.stop()]);
  }

  /** Aborts at the next change from now on. */
  get nextChange(): AbortSignal {
    return this.change.signal;
  }

  /** Asks the cluster for a sandbox; null when none of ours has the id. */
  async find(id: string, asking: Asking = {}): Promise<ClusterSandbox | null> {
    const labelSelector = `${this.selector},${SANDBOX_LABEL}=${id}`;
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
    return this.pods.known(name);
  }

  /** @param body a JSON merge patch, or the operations of a JSON patch */
  async patch(id: string, body: object, asking: Asking = {}): Promise<void> {
    const as = Array.isArray(body) ? 'patch' : 'merge';
    await this.api.call(this.path(id), { method: 'PATCH', body, as, ...asking });
  }

  /** Every sandbox as the watch last reported it. Throws ApiServerError when the cluster cannot be asked. */
  async list(): Promise<ClusterSandbox[]> {
    const [sandboxes, pods] = await Promise.all([this.sandboxes.objects(), this.pods.objects()]);
    const byOwner = Map.groupBy(pods.values(), ({ owner }) => owner);
    return [...sandboxes.values()].map((sandbox) => withPod(sandbox, byOwner.get(sandbox.uid) ?? []));
  }

  private notify(): void {
    this.settling ??= setTimeout(() => {
      this.settling = null;
      this.change.abort();
      this.change = new AbortController();
      this.listener();
    }, SETTLE_MS).unref();
  }
}

/** What the backend does in its namespace; the policy reports its own. The Role of deploy/kubernetes gives it. */
const RIGHTS = [
  {
    group: SANDBOX_GROUP,
    resource: 'sandboxes',
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  },
  { group: '', resource: 'pods', verbs: ['list', 'watch'] },
  { group: '', resource: 'events', verbs: ['list'] },
  { group: '', resource: 'pods', subresource: 'log', verbs: ['get'] },
  { group: '', resource: 'pods', subresource: 'attach', verbs: ['get', 'create'] },
];
const TUNNEL = { group: '', resource: 'pods', subresource: 'portforward', verbs: ['get', 'create'] };

/** One sentence for the operator; null where nothing is missing, or where the API server does not say. */
export async function missingRights(
  api: ApiServer,
  namespace: string,
  reach: 'pod' | 'proxy',
): Promise<string | null> {
  const asked = (reach === 'proxy' ? [...RIGHTS, TUNNEL] : RIGHTS).map(async ({ verbs, ...attributes }) => {
    const allowed = await Promise.all(
      verbs.map((verb) => isAllowed(api, { namespace, verb, ...attributes })),
    );
    const missing = verbs.filter((_, index) => !allowed[index]);
    const name = [attributes.resource, attributes.subresource].filter(Boolean).join('/');
    return missing.length === 0 ? [] : [`${name} (${missing.join(', ')})`];
  });
  const missing = (await Promise.all(asked)).flat();
  return missing.length === 0
    ? null
    : `the service's account lacks rights in the namespace ${namespace}: ${missing.join(', ')}; compare with the Role of deploy/kubernetes or of the chart`;
}

async function isAllowed(api: ApiServer, resourceAttributes: object): Promise<boolean> {
  try {
    const body = {
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      spec: { resourceAttributes },
    };
    const review = await api.call(ACCESS_REVIEWS, { method: 'POST', body, patienceMs: 0 });
    return jsonAt(review, 'status', 'allowed') !== false;
  } catch (error) {
    if (error instanceof ApiServerError) {
      return true;
    }
    throw error;
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
      return `${refusalOf(message)} (${message})`;
    default:
      return message;
  }
}

/** The API server refuses for these reasons with the same status. */
function refusalOf(message: string): string {
  if (message.includes('exceeded quota')) {
    return 'a quota of the namespace is used up';
  }
  return / cannot \w+ resource /.test(message)
    ? "the service's account lacks a right"
    : 'a rule of the cluster refuses it';
}

/** What is left of a sandbox that should have ended, and what an operator can do. */
export function remainder(found: ClusterSandbox | null, namespace: string, waitedMs: number): string {
  const after = `after ${waitedMs / 1000} s`;
  const kubectl = `kubectl --namespace ${namespace}`;
  if (found?.pod?.isDeleting) {
    const { name, node } = found.pod;
    return `its pod on the node ${node} has not ended ${after}: is that node ready? If it is lost, remove it from the cluster, or only the pod: ${kubectl} delete pod ${name} --force`;
  }
  return found?.sandbox.isDeleting
    ? `it or its volume is held ${after}: ${kubectl} describe sandboxes.${SANDBOX_GROUP},pvc --selector ${SANDBOX_LABEL}=${found.sandbox.sandboxId} names the finalizer`
    : `the cluster has not said ${after} that its pod has ended: does the controller of agent-sandbox run?`;
}
