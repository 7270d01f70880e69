import { constants } from 'node:os';
import { AGENT_PORT } from '../container-layout.js';
import type { SandboxExit, SandboxFacts } from '../sandbox-backend.js';
import type { ObservedContainer, ObservedPod, ObservedSandbox } from './observed-objects.js';

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

/** Whether the controller has replaced the pod that has the key. */
export function isReplaced({ sandbox, pod }: ClusterSandbox): boolean {
  return sandbox.mode === 'Running' && sandbox.keyedPod !== null && sandbox.keyedPod !== pod?.uid;
}

export function sandboxFacts(found: ClusterSandbox, reach: PodReach): SandboxFacts {
  const { sandbox, pod } = found;
  const { sandboxId: id, createdAt } = sandbox;
  if (isReplaced(found)) {
    return { ...stopped(id, createdAt), exit: exitOfReplaced() };
  }
  if (pod === null) {
    // It is about to have a pod, or it is suspended.
    const state = sandbox.mode === 'Running' && !sandbox.isDeleting ? 'running' : 'stopped';
    return { ...stopped(id, createdAt), state };
  }
  if (hasPodEnded(pod)) {
    // An evicted or deleted pod ends in order, and its object goes a moment later.
    const isRemoved = pod.isDeleting && sandbox.mode === 'Running' && !sandbox.isDeleting;
    return { ...stopped(id, createdAt), exit: isRemoved ? exitOfReplaced() : exitOf(pod) };
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

/** A permanent problem of the start, as a sentence for the owner; null when there is none. */
export function startProblem({ container }: ObservedPod, image: string): string | null {
  const { reason, message } = container;
  if (container.state !== 'waiting' || reason === null) {
    return null;
  }
  const said = [reason, message].filter(Boolean).join(': ');
  if (IMAGE_CAUSES.has(reason)) {
    return `the image ${image} cannot be pulled (${said}): is the name right, do the nodes have it, and may they pull it? SANDBOX_SERVICE_ACCOUNT names a service account with imagePullSecrets`;
  }
  return CONTAINER_CAUSES.has(reason) ? `the container cannot be started (${said})` : null;
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
