import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { SandboxBackend } from '../backends/sandbox-backend.js';
import { BackendReadiness } from './backend-readiness.js';

/** Short, because a tool can write a gigabyte in a second. */
const EVERY_MS = 500;

@Injectable()
export class BackendSweeper extends BackgroundLoop {
  private found: number | null = null;

  constructor(
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
  ) {
    super(EVERY_MS, new Logger('Sandboxes'), 'failed to sweep the sandbox backend');
  }

  /** Removed sandboxes of which some files are left; null before the first sweep. */
  get leftovers(): number | null {
    return this.found;
  }

  protected async work(): Promise<void> {
    if (!(await this.readiness.isReady())) {
      return;
    }
    const { leftovers, notices } = await this.backend.sweep();
    this.found = leftovers;
    for (const { level, message, sandboxId, detail } of notices) {
      this.logger[level](message, { sandbox_id: sandboxId, detail });
    }
  }
}
