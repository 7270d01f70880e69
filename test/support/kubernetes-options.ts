import type { KubernetesBackendOptions } from '../../packages/sandboxes/src/kubernetes/kubernetes.options.js';

/** The options of a backend that reaches pods at their addresses, without those that say which cluster it is. */
export const KUBERNETES_OPTIONS: Omit<KubernetesBackendOptions, 'kubeconfig' | 'namespace' | 'callbackUrl'> =
  {
    instanceId: 'test',
    reach: 'pod',
    defaultImage: 'agent:1',
    volumeSize: '1Gi',
    storageClass: null,
    runtimeClass: null,
    serviceAccount: null,
    podTemplate: {},
    cpu: 1,
    memoryMb: 512,
    reachedFrom: [],
    allow: [],
    egress: null,
    nodeWaitMs: 0,
    environment: {},
    graceSeconds: 10,
  };
