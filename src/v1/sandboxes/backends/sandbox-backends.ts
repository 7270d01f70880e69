import { dockerBackend } from './docker/docker.descriptor.js';
import { kubernetesBackend } from './kubernetes/kubernetes.descriptor.js';
import { processBackend } from './process/process.descriptor.js';
import type { SandboxBackendKind } from './sandbox-backend.js';
import type { SandboxBackendDescriptor } from './sandbox-backend.descriptor.js';

/** The only place that chooses by kind. */
export const SANDBOX_BACKENDS: {
  readonly [Kind in SandboxBackendKind]: SandboxBackendDescriptor & { kind: Kind };
} = {
  process: processBackend,
  docker: dockerBackend,
  kubernetes: kubernetesBackend,
};
