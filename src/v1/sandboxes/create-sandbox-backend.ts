import type { AppConfig } from '../../config/app-config.js';
import { SandboxBackendError } from './backends/sandbox-backend.error.js';
import type { SandboxBackend } from './backends/sandbox-backend.js';

/** The backend that the operator chose. */
export async function createSandboxBackend(config: AppConfig): Promise<SandboxBackend> {
  throw new SandboxBackendError(`SANDBOX_BACKEND ${config.sandboxes.backend} is not there yet`);
}
