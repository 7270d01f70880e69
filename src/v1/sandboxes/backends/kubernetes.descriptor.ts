import { GRACE_SECONDS } from '@slipway/sandboxes/sandbox-backend.js';
import type { SandboxBackendDescriptor } from './sandbox-backend.descriptor.js';

/** Pods belong to no machine, so replicas share their leases and the queue of starts. */
export const kubernetesBackend = {
  kind: 'kubernetes',
  hostBound: false,
  runsContainers: true,
  serviceHost: ({ host, ownAddress, ownHostname }) => host ?? ownAddress ?? ownHostname,
  cutOffFromLoopback: () => 'pods',
  proxyEnvironment: null,
  create: async ({ sandboxes, egress, instanceId, callbackUrl, defaults, allow }) => {
    const { KubernetesSandboxBackend } = await import('@slipway/sandboxes/kubernetes/kubernetes.backend.js');
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
      egress: egress.proxyKeys === null ? null : { host: egress.host },
      callbackUrl,
      nodeWaitMs: sandboxes.nodeWaitSeconds * 1000,
      graceSeconds: GRACE_SECONDS,
    });
  },
} as const satisfies SandboxBackendDescriptor;
