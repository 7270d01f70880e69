import { dockerBackend } from './docker.descriptor.js';
import { kubernetesBackend } from './kubernetes.descriptor.js';
import { processBackend } from './process.descriptor.js';
import type { SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';
import type { SandboxBackendDescriptor } from './sandbox-backend.descriptor.js';

/** The only place that chooses by kind. */
export const SANDBOX_BACKENDS: {
  readonly [Kind in SandboxBackendKind]: SandboxBackendDescriptor & { kind: Kind };
} = {
  process: processBackend,
  docker: dockerBackend,
  kubernetes: kubernetesBackend,
};
