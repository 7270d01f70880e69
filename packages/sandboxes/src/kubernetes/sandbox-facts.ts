import { constants } from 'node:os';
import { AGENT_PORT, SANDBOX_LABEL } from '../container-layout.js';
import { type SandboxExit, type SandboxFacts, parsePorts } from '../sandbox-backend.js';
import { jsonAt, jsonList, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { AGENT_CONTAINER, POD_ANNOTATION, PORTS_ANNOTATION, wayOut } from './sandbox-manifest.js';

// A subset of the cluster's objects: a service with a thousand sandboxes must not hold each manifest.

const MAX_TEXT = 1_000;
const MAX_EVENT_TEXT = 300;

interface ObservedObject {
  name: string;
  uid: string;
  isDeleting: boolean;
}

export interface ObservedSandbox extends ObservedObject {
  sandboxId: string;
  instanceId: string | null;
  createdAt: number | null;
  mode: 'Running' | 'Suspended';
  /** The controller has seen the last change, and the pod is gone. */
  isSuspended: boolean;
  /** Uid of the pod that was given its session key in this start. */
  keyedPod: string | null;
  /** Equal where pods have the same way out. */
  wayOut: string;
  problem: string | null;
}

export interface ObservedPod extends ObservedObject {
  owner: string | null;
  ip: string | null;
  ports: Readonly<Record<string, number>>;
  phase: string;
  /** Why the node or the cluster ended it: `Evicted: The node was low on resource: memory`. */
  endedBy: string | null;
  /** Epoch milliseconds; null unless it was told to end. */
  endsAt: number | null;
  node: string | null;
  /** Whether its node has reported anything about it. */
  isSeen: boolean;
  unscheduled: string | null;
  container: ObservedContainer;
}

export interface ObservedContainer {
  name: string;
  image: string | null;
  state: 'waiting' | 'running' | 'terminated';
  /** One word: `ErrImagePull`, `OOMKilled`. */
  reason: string | null;
  message: string | null;
  exitCode: number | null;
  signal: number | null;
}

const NOT_STARTED: ObservedContainer = {
  name: AGENT_CONTAINER,
  image: null,
  state: 'waiting',
  reason: null,
  message: null,
  exitCode: null,
  signal: null,
};

export function readSandbox(object: unknown): ObservedSandbox | null {
  const observed = readObject(object);
  const sandboxId = labelOf(object, SANDBOX_LABEL);
  if (observed === null || sandboxId === null) {
    return null;
  }
  const generation = jsonNumber(object, 'metadata', 'generation') ?? 0;
  const suspended = condition(object, 'Suspended');
  const ready = condition(object, 'Ready');
  const mode = jsonText(object, 'spec', 'operatingMode') === 'Suspended' ? 'Suspended' : 'Running';
  return {
    ...observed,
    sandboxId,
    instanceId: labelOf(object, 'slipway.instance'),
    createdAt: Date.parse(jsonText(object, 'metadata', 'creationTimestamp') ?? '') || null,
    mode,
    isSuspended:
      mode === 'Suspended' &&
      jsonText(suspended, 'status') === 'True' &&
      (jsonNumber(suspended, 'observedGeneration') ?? 0) >= generation,
    keyedPod: jsonText(jsonAt(object, 'metadata', 'annotations'), POD_ANNOTATION),
    wayOut: wayOut(jsonAt(object, 'spec', 'podTemplate')),
    problem: jsonText(ready, 'reason') === 'ReconcilerError' ? clipped(jsonText(ready, 'message')) : null,
  };
}

export function readPod(object: unknown): ObservedPod | null {
  const observed = readObject(object);
  if (observed === null) {
    return null;
  }
  const owner = jsonList(object, 'metadata', 'ownerReferences').find(
    (reference) => jsonText(reference, 'kind') === 'Sandbox',
  );
  const scheduled = condition(object, 'PodScheduled');
  const disruption = condition(object, 'DisruptionTarget');
  const end =
    jsonText(object, 'status', 'reason') === null && jsonText(disruption, 'status') === 'True'
      ? disruption
      : jsonAt(object, 'status');
  const reason = jsonText(end, 'reason');
  const ports = jsonText(jsonAt(object, 'metadata', 'annotations'), PORTS_ANNOTATION) ?? '';
  return {
    ...observed,
    owner: jsonText(owner, 'uid'),
    ip: jsonText(object, 'status', 'podIP'),
    ports: parsePorts(parseJson(ports)),
    phase: jsonText(object, 'status', 'phase') ?? 'Unknown',
    endedBy: reason === null ? null : clipped([reason, jsonText(end, 'message')].filter(Boolean).join(': ')),
    endsAt: Date.parse(jsonText(object, 'metadata', 'deletionTimestamp') ?? '') || null,
    node: jsonText(object, 'spec', 'nodeName'),
    isSeen: jsonText(object, 'status', 'startTime') !== null,
    unscheduled:
      jsonText(scheduled, 'status') === 'False'
        ? clipped(jsonText(scheduled, 'message') ?? jsonText(scheduled, 'reason'))
        : null,
    container: currentContainer(object),
  };
}

function readObject(object: unknown): ObservedObject | null {
  const [name, uid] = [jsonText(object, 'metadata', 'name'), jsonText(object, 'metadata', 'uid')];
  return name === null || uid === null
    ? null
    : { name, uid, isDeleting: jsonText(object, 'metadata', 'deletionTimestamp') !== null };
}

/** An init container counts until it has succeeded, because the start waits for it; a service mesh's until it runs. */
function currentContainer(object: unknown): ObservedContainer {
  const sidecars = jsonList(object, 'spec', 'initContainers')
    .filter((each) => jsonText(each, 'restartPolicy') === 'Always')
    .map((each) => jsonText(each, 'name'));
  const statuses = jsonList(object, 'status', 'containerStatuses').map(readContainer);
  const agent = statuses.find(({ name }) => name === AGENT_CONTAINER) ?? NOT_STARTED;
  const before = jsonList(object, 'status', 'initContainerStatuses').map(readContainer);
  const unfinished = before.find(({ name, state, exitCode }) =>
    sidecars.includes(name)
      ? state === 'waiting' && agent.state === 'waiting'
      : state !== 'terminated' || exitCode !== 0,
  );
  return unfinished ?? agent;
}

function readContainer(status: unknown): ObservedContainer {
  const state = (['terminated', 'running', 'waiting'] as const).find(
    (name) => jsonAt(status, 'state', name) !== undefined,
  );
  const details = jsonAt(status, 'state', state ?? 'waiting');
  return {
    name: jsonText(status, 'name') ?? AGENT_CONTAINER,
    image: jsonText(status, 'image'),
    state: state ?? 'waiting',
    reason: jsonText(details, 'reason'),
    message: clipped(jsonText(details, 'message')),
    exitCode: jsonNumber(details, 'exitCode'),
    signal: jsonNumber(details, 'signal'),
  };
}

function condition(object: unknown, type: string): unknown {
  return jsonList(object, 'status', 'conditions').find((each) => jsonText(each, 'type') === type);
}

function labelOf(object: unknown, label: string): string | null {
  return jsonText(jsonAt(object, 'metadata', 'labels'), label);
}

function clipped(text: string | null): string | null {
  return text === null ? null : textHead(text, MAX_TEXT);
}

/** 128 + SIGKILL: the kernel's when memory is used up, and a node's. */
const KILLED_EXIT_CODE = 137;
/** 128 + SIGTERM. */
const STOPPED_EXIT_CODE = 143;

const IMAGE_CAUSES = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);
const CONTAINER_CAUSES = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
/** A node tries again after these: they come of many starts at once, of a slow node, or of a registry in trouble. */
const PASSING =
  /pull QPS exceeded|deadline exceeded|is reserved for|time(d )?out|connection (refused|reset)|\bEOF\b|temporary failure|too ?many ?requests|\b50[0234]\b/i;

/** Allowance for clock skew between nodes, and for delays of a busy one. */
const OVERDUE_MS = 60_000;

export interface PodReach {
  by: 'pod' | 'proxy';
  namespace: string;
}

export interface ClusterSandbox {
  sandbox: ObservedSandbox;
  pod: ObservedPod | null;
}

export function hasPodEnded({ phase, container }: ObservedPod): boolean {
  return phase === 'Succeeded' || phase === 'Failed' || container.state === 'terminated';
}

/** Whether a signal from outside ended the program and no reason is known. */
export function wasKilled({ container, endedBy }: ObservedPod): boolean {
  const { exitCode, reason } = container;
  const isSignal = exitCode === KILLED_EXIT_CODE || exitCode === STOPPED_EXIT_CODE;
  return isSignal && reason !== 'OOMKilled' && endedBy === null;
}

/** Whether its program never ran, because the node was full or about to end: the scheduler knows that a moment later. */
export function wasRejected({ phase, container, endedBy }: ObservedPod): boolean {
  return phase === 'Failed' && endedBy !== null && container.exitCode === null;
}

/** Whether a node that ends pods would have: one that was lost says nothing, and keeps the pod's object for ever. */
function isOverdue({ endsAt }: ObservedPod, now: number): boolean {
  return endsAt !== null && now > endsAt + OVERDUE_MS;
}

/** Whether the controller has replaced the pod that has the key. */
export function isReplaced({ sandbox, pod }: ClusterSandbox): boolean {
  return sandbox.mode === 'Running' && sandbox.keyedPod !== null && sandbox.keyedPod !== pod?.uid;
}

export function sandboxFacts(found: ClusterSandbox, reach: PodReach, now = Date.now()): SandboxFacts {
  const { sandbox, pod } = found;
  const { sandboxId: id, createdAt } = sandbox;
  if (isReplaced(found)) {
    return { ...stopped(id, createdAt), exit: exitOfReplaced(), isReplaced: true };
  }
  if (pod === null) {
    // It is about to have a pod, or it is suspended.
    const state = sandbox.mode === 'Running' && !sandbox.isDeleting ? 'running' : 'stopped';
    return { ...stopped(id, createdAt), state };
  }
  const isRemoved = pod.isDeleting && sandbox.mode === 'Running' && !sandbox.isDeleting;
  if (hasPodEnded(pod) || (isRemoved && isOverdue(pod, now))) {
    // An evicted or deleted pod ends in order, and its object goes a moment later.
    const isUnexplained = isRemoved && pod.endedBy === null;
    return { ...stopped(id, createdAt), exit: isUnexplained ? exitOfReplaced() : exitOf(pod) };
  }
  return {
    id,
    state: 'running',
    address: addressOf(pod, AGENT_PORT, reach),
    ports: Object.fromEntries(
      Object.entries(pod.ports).flatMap(([name, port]) => {
        const address = addressOf(pod, port, reach);
        return address === null ? [] : [[name, address]];
      }),
    ),
    exit: null,
    createdAt,
  };
}

export function addressOf(
  { name, ip }: ObservedPod,
  port: number,
  { by, namespace }: PodReach,
): string | null {
  if (ip === null) {
    return null;
  }
  return by === 'proxy'
    ? `kube:${namespace}/${name}:${port}`
    : `http://${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
}

/** A problem of the start, as a sentence for the owner; null when there is none. */
export function startProblem({ container }: ObservedPod): { text: string; isPassing: boolean } | null {
  const { image, reason, message } = container;
  if (container.state !== 'waiting' || reason === null) {
    return null;
  }
  const said = [reason, message].filter(Boolean).join(': ');
  const isPassing = PASSING.test(said);
  if (IMAGE_CAUSES.has(reason)) {
    return {
      isPassing,
      text: `the image ${image} cannot be pulled (${said}): is the name right, do the nodes have it, and may they pull it? SANDBOX_SERVICE_ACCOUNT names a service account with imagePullSecrets`,
    };
  }
  return CONTAINER_CAUSES.has(reason)
    ? { isPassing, text: `the container cannot be started (${said})` }
    : null;
}

export interface PodEvent {
  reason: string;
  message: string;
  at: number;
}

export function readEvent(event: unknown): PodEvent {
  const time =
    jsonText(event, 'lastTimestamp') ??
    jsonText(event, 'eventTime') ??
    jsonText(event, 'metadata', 'creationTimestamp');
  return {
    reason: jsonText(event, 'reason') ?? '',
    message: jsonText(event, 'message') ?? '',
    at: Date.parse(time ?? '') || 0,
  };
}

/** What the last event says to users about a slow start; null when they would not understand it. */
export function progressOf(events: readonly PodEvent[], image: string): string | null {
  const [last] = events.toSorted((one, other) => other.at - one.at);
  if (last === undefined) {
    return null;
  }
  if (last.reason === 'Pulling') {
    return `the image ${image} is being pulled`;
  }
  return /^Failed(Mount|AttachVolume|CreatePodSandBox)/.test(last.reason)
    ? `its pod cannot be started yet: ${textHead(last.message, MAX_EVENT_TEXT)}`
    : null;
}

export interface VolumeNews {
  text: string;
  /** Whether a provisioner makes it, and has not failed last. */
  isComing: boolean;
}

/** What the events of a volume claim say. A failure stays, because lines that alternate would prolong a start. */
export function volumeNews(events: readonly PodEvent[]): VolumeNews | null {
  const sorted = events.toSorted((one, other) => other.at - one.at);
  const latest = (reasons: RegExp): PodEvent | undefined => sorted.find(({ reason }) => reasons.test(reason));
  const failure = latest(/^(ProvisioningFailed|FailedBinding)$/);
  const attempt = latest(/^Provisioning$/);
  const said = failure ?? attempt ?? latest(/^ExternalProvisioning$/);
  return said === undefined
    ? null
    : {
        text: `its volume is not there yet: ${textHead(said.message, MAX_EVENT_TEXT)}`,
        // Most failures come within the second of their attempt, and events have no better clock.
        isComing: failure === undefined || (attempt?.at ?? 0) > failure.at,
      };
}

function stopped(id: string, createdAt: number | null): SandboxFacts {
  return { id, state: 'stopped', address: null, ports: {}, exit: null, createdAt };
}

function exitOfReplaced(): SandboxExit {
  const cause =
    'Its pod was removed by something else: an administrator, a drained node, or a node that was lost. Resuming starts it again; its files are kept.';
  return { code: null, signal: null, outOfMemory: false, cause };
}

function exitOf({ container, endedBy }: ObservedPod): SandboxExit {
  const exit = exitOfContainer(container);
  return endedBy === null
    ? exit
    : {
        ...exit,
        cause: `The cluster ended its pod (${endedBy}). Resuming starts it again; its files are kept.`,
      };
}

function exitOfContainer({ exitCode, signal, reason }: ObservedContainer): SandboxExit {
  const name = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0];
  return {
    code: exitCode,
    signal: exitCode === null ? (name ?? null) : null,
    // The kernel may also have killed a tool, and the agent server lived on.
    outOfMemory: reason === 'OOMKilled' && (exitCode === null || exitCode === KILLED_EXIT_CODE),
  };
}

export function isSuspended(found: ClusterSandbox | null): boolean {
  return found === null || (found.pod === null && found.sandbox.isSuspended);
}
