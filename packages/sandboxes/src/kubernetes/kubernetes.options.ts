import type { PodTemplatePatch, SandboxBackendOptions } from '../sandbox-backend.js';

export const DEFAULT_NAMESPACE = 'slipway-sandboxes';

export interface KubernetesBackendOptions extends Pick<SandboxBackendOptions, 'instanceId'> {
  /** Path of a kubeconfig; null is the service account of the pod. */
  kubeconfig: string | null;
  namespace: string | null;
  /** How the service connects to pods: by their own addresses, or through the API server. */
  reach: 'pod' | 'proxy';
  volumeSize: string;
  storageClass: string | null;
  runtimeClass: string | null;
  serviceAccount: string | null;
  podTemplate: PodTemplatePatch;
  /** Who may open connections to pods besides the service. */
  reachedFrom: readonly string[];
  /** Variables of every sandbox. */
  environment: Readonly<Record<string, string>>;
  /** The image for specifications without one, and the source of our agent server for images without it. */
  defaultImage: string;
  cpu: number;
  memoryMb: number;
  allow: readonly string[];
  /** Where pods find the egress proxy; without `host` by its Service. Null: there is none. */
  egress: { host: string | null } | null;
  /** Base address of the service for pods; it is known once the service listens. */
  callbackUrl: () => string;
  nodeWaitMs: number;
  graceSeconds: number;
}
