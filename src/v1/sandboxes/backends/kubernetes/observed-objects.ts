import { jsonAt, jsonList, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { SANDBOX_LABEL } from '../container-layout.js';
import { parsePorts } from '../sandbox-backend.js';
import { AGENT_CONTAINER, POD_ANNOTATION, PORTS_ANNOTATION } from './sandbox-manifest.js';

// A subset of the cluster's objects: a service with a thousand sandboxes must not hold each manifest.

const MAX_TEXT = 1_000;

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
  problem: string | null;
}

export interface ObservedPod extends ObservedObject {
  owner: string | null;
  ip: string | null;
  ports: Readonly<Record<string, number>>;
  phase: string;
  /** Why the node or the cluster ended it: `Evicted: The node was low on resource: memory`. */
  endedBy: string | null;
  unscheduled: string | null;
  container: ObservedContainer;
}

export interface ObservedContainer {
  name: string;
  state: 'waiting' | 'running' | 'terminated';
  /** One word: `ErrImagePull`, `OOMKilled`. */
  reason: string | null;
  message: string | null;
  exitCode: number | null;
  signal: number | null;
}

const NOT_STARTED: ObservedContainer = {
  name: AGENT_CONTAINER,
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
  const reason = jsonText(object, 'status', 'reason');
  const ports = jsonText(jsonAt(object, 'metadata', 'annotations'), PORTS_ANNOTATION) ?? '';
  return {
    ...observed,
    owner: jsonText(owner, 'uid'),
    ip: jsonText(object, 'status', 'podIP'),
    ports: parsePorts(parseJson(ports)),
    phase: jsonText(object, 'status', 'phase') ?? 'Unknown',
    endedBy:
      reason === null
        ? null
        : clipped([reason, jsonText(object, 'status', 'message')].filter(Boolean).join(': ')),
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

/** An init container counts until it has succeeded, because the start waits for it until then. */
function currentContainer(object: unknown): ObservedContainer {
  const before = jsonList(object, 'status', 'initContainerStatuses').map(readContainer);
  const unfinished = before.find(({ state, exitCode }) => state !== 'terminated' || exitCode !== 0);
  if (unfinished !== undefined) {
    return unfinished;
  }
  const agent = jsonList(object, 'status', 'containerStatuses').find(
    (status) => jsonText(status, 'name') === AGENT_CONTAINER,
  );
  return agent === undefined ? NOT_STARTED : readContainer(agent);
}

function readContainer(status: unknown): ObservedContainer {
  const state = (['terminated', 'running', 'waiting'] as const).find(
    (name) => jsonAt(status, 'state', name) !== undefined,
  );
  const details = jsonAt(status, 'state', state ?? 'waiting');
  return {
    name: jsonText(status, 'name') ?? AGENT_CONTAINER,
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
