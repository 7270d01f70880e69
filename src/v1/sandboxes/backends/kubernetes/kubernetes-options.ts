import type { SandboxBackendOptions } from '../sandbox-backend.js';

/** Where sandboxes are when nothing else says it. */
export const DEFAULT_NAMESPACE = 'slipway-sandboxes';

/** Configuration of the kubernetes backend. */
export interface KubernetesBackendOptions extends Pick<SandboxBackendOptions, 'instanceId'> {
  /** Path of the file with the cluster and its credentials; null: the service account of the service's own pod. */
  kubeconfig: string | null;
  /** Null: the service's own, else the default one. */
  namespace: string | null;
  /** `pod`: the service reaches the addresses of pods; `proxy`: it reaches them through the API server. */
  reach: 'pod' | 'proxy';
  /** Image of sandboxes whose specification names none, and source of our agent server for images without it. */
  defaultImage: string;
  volumeSize: string;
  /** Null: the cluster's default, here and below. */
  storageClass: string | null;
  runtimeClass: string | null;
  serviceAccount: string | null;
  /** Processors of a sandbox whose specification sets none. */
  cpu: number;
  /** Mebibytes, likewise. */
  memoryMb: number;
  /** What may connect to pods: ranges, and labels of pods; empty: found out. */
  reachedFrom: readonly string[];
  /** Ranges and hosts that are not public and that pods may connect to. */
  allow: readonly string[];
  /** Base address of the service as pods reach it; asked once the service listens. */
  callbackUrl: () => string;
  /** How long a pod may wait for a node. */
  nodeWaitMs: number;
  /** The service's variables that sandboxes may see; of these a pod gets those that name a proxy. */
  environment: Readonly<Record<string, string>>;
  /** How long a program may take to end after SIGTERM, seconds. */
  graceSeconds: number;
}
