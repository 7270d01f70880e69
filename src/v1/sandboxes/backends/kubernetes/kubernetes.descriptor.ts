import { GRACE_SECONDS, type PodTemplatePatch, type SandboxBackendOptions } from '../sandbox-backend.js';
import type { SandboxBackendDescriptor } from '../sandbox-backends.js';

export const DEFAULT_NAMESPACE = 'slipway-sandboxes';

export interface KubernetesBackendOptions extends Pick<SandboxBackendOptions, 'instanceId'> {
  /** File with the cluster and its credentials; null is the service account of the service's own pod. */
  kubeconfig: string | null;
  /** Null is the service's own namespace, or else the default one. */
  namespace: string | null;
  /** `pod` connects to the addresses of pods; `proxy` goes through the API server. */
  reach: 'pod' | 'proxy';
  /** The image for specifications without one, and the source of our agent server for images without it. */
  defaultImage: string;
  volumeSize: string;
  /** Null is the cluster's default. */
  storageClass: string | null;
  runtimeClass: string | null;
  serviceAccount: string | null;
  podTemplate: PodTemplatePatch;
  cpu: number;
  memoryMb: number;
  /** Address ranges and pod labels that may connect to pods; when empty they are found out. */
  reachedFrom: readonly string[];
  allow: readonly string[];
  /** Base address of the service for pods; it is known once the service listens. */
  callbackUrl: () => string;
  nodeWaitMs: number;
  environment: Readonly<Record<string, string>>;
  graceSeconds: number;
}

/** Pods belong to no machine, so replicas share their leases and the queue of starts. */
export const kubernetesBackend = {
  kind: 'kubernetes',
  hostBound: false,
  runsContainers: true,
  serviceHost: ({ host, ownAddress, ownHostname }) => host ?? ownAddress ?? ownHostname,
  cutOffFromLoopback: () => 'pods',
  create: async ({ sandboxes, instanceId, callbackUrl, defaults, allow }) => {
    const { KubernetesSandboxBackend } = await import('./kubernetes.backend.js');
    return new KubernetesSandboxBackend({
      instanceId,
      kubeconfig: sandboxes.kubeconfig,
      namespace: sandboxes.namespace,
      reach: sandboxes.reach,
      defaultImage: sandboxes.image,
      volumeSize: sandboxes.volumeSize,
      storageClass: sandboxes.storageClass,
      runtimeClass: sandboxes.runtimeClass,
      serviceAccount: sandboxes.serviceAccount,
      podTemplate: sandboxes.podTemplate,
      ...defaults,
      reachedFrom: sandboxes.reachedFrom,
      allow,
      callbackUrl,
      nodeWaitMs: sandboxes.nodeWaitSeconds * 1000,
      environment: sandboxes.environment,
      graceSeconds: GRACE_SECONDS,
    });
  },
} as const satisfies SandboxBackendDescriptor;
