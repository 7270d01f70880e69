import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { errorMessage } from '../../../common/errors/error-message.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxBackendError, SandboxBackend } from '../backends/sandbox-backend.js';
import { SandboxCallback } from '../sandbox-callback.js';
import { specsProblem } from './launch-plan.js';

/**
 * Prepares the backend once, beside the start of the service: what needs it waits, nothing else does. A backend that
 * cannot be prepared (a Docker engine that is down) is tried again by the next one that needs it.
 */
@Injectable()
export class BackendReadiness implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private preparing: Promise<void> | null = null;

  constructor(
    private readonly backend: SandboxBackend,
    private readonly callback: SandboxCallback,
    private readonly specs: SandboxSpecs,
  ) {}

  onApplicationBootstrap(): void {
    this.ready().catch((error: unknown) => {
      this.logger.error(
        `sandboxes cannot run: ${errorMessage(error)}`,
        error instanceof Error && !(error instanceof SandboxBackendError) ? error.stack : undefined,
      );
    });
  }

  /** A service that has stopped makes no folders any more. */
  async beforeApplicationShutdown(): Promise<void> {
    // How it ended was told by then.
    await this.preparing?.catch(() => undefined);
  }

  /** @throws SandboxBackendError when sandboxes cannot run here, with one line for the operator */
  async ready(): Promise<void> {
    this.preparing ??= this.prepare();
    await this.preparing;
  }

  /** Whether sandboxes can run here. Why not is told by the start of the service and by every start of a sandbox. */
  async isReady(): Promise<boolean> {
    try {
      await this.ready();
      return true;
    } catch (error) {
      if (error instanceof SandboxBackendError) {
        return false;
      }
      throw error;
    }
  }

  private async prepare(): Promise<void> {
    let lines: string[];
    try {
      lines = await this.backend.prepare();
    } catch (error) {
      this.preparing = null;
      throw error;
    }
    const problems = [this.callback.problem, specsProblem(this.specs.all(), this.backend.kind)];
    problems.filter((problem) => problem !== null).forEach((problem) => this.logger.warn(problem));
    for (const line of lines) {
      if (this.backend.isolation === 'none') {
        this.logger.warn(line);
      } else {
        this.logger.log(line);
      }
    }
  }
}
