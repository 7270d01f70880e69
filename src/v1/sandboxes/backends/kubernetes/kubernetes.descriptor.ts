import { GRACE_SECONDS, type SandboxBackendDescriptor } from '../sandbox-backend.descriptor.js';

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
