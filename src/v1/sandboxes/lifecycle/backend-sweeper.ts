import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { SandboxBackend } from '../backends/sandbox-backend.js';
import { BackendReadiness } from './backend-readiness.js';

/** Short, because a tool can write a gigabyte in a second. */
const EVERY_MS = 500;

@Injectable()
export class BackendSweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly loop = new RepeatedWork(
    EVERY_MS,
    () => this.sweep(),
    (error) => {
      this.logger.error('failed to sweep the sandbox backend', errorStack(error));
    },
  );

  private found: number | null = null;

  constructor(
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
  ) {}

  /** Removed sandboxes of which some files are left; null before the first sweep. */
  get leftovers(): number | null {
    return this.found;
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
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
