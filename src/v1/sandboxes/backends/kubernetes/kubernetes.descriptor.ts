import type { SandboxConfig } from '../../../../config/sandbox-config.js';
import { GRACE_SECONDS, type SandboxBackendOptions } from '../sandbox-backend.js';
import type { SandboxBackendDescriptor } from '../sandbox-backend.descriptor.js';

export const DEFAULT_NAMESPACE = 'slipway-sandboxes';

/** Settings have the names and meanings of the configuration. */
type Settings =
  | 'kubeconfig'
  | 'namespace'
  | 'reach'
  | 'volumeSize'
  | 'storageClass'
  | 'runtimeClass'
  | 'serviceAccount'
  | 'podTemplate'
  | 'reachedFrom'
  | 'environment';

export interface KubernetesBackendOptions
  extends Pick<SandboxBackendOptions, 'instanceId'>, Readonly<Pick<SandboxConfig, Settings>> {
  /** The image for specifications without one, and the source of our agent server for images without it. */
  defaultImage: string;
  cpu: number;
  memoryMb: number;
  allow: readonly string[];
  /** Base address of the service for pods; it is known once the service listens. */
  callbackUrl: () => string;
  nodeWaitMs: number;
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
      reachedFrom: sandboxes.reachedFrom,
      environment: sandboxes.environment,
      ...defaults,
      allow,
      callbackUrl,
      nodeWaitMs: sandboxes.nodeWaitSeconds * 1000,
      graceSeconds: GRACE_SECONDS,
    });
  },
} as const satisfies SandboxBackendDescriptor;
