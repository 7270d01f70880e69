import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { type PartState, Readiness } from '../../../health/readiness.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import {
  type PreparationLine,
  SandboxBackend,
  SandboxBackendError,
  SandboxBackendUnavailableError,
} from '@slipway/sandboxes/sandbox-backend.js';
import { CredentialsPlace } from '../../../config/credentials-place.js';
import { SandboxCallback } from '../sandbox-callback.js';
import { specsProblem } from './launch-plan.js';
import { BackgroundLoop } from '../../../common/background-loop.js';

const NO_SANDBOX = '0'.repeat(22);
/** Loops and probes ask several times a second, and each try asks the engine a lot. */
const TRY_AGAIN_MS = 5_000;
const ADVICE =
  'Sandboxes cannot run: conversations cannot be started or resumed. Look at the engine that SANDBOX_BACKEND names, and at the log of the service.';

/** Prepares the backend while the service starts. After a failure the next caller that needs it tries again. */
@Injectable()
export class BackendReadiness
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  private readonly logger = new Logger('Sandboxes');
  private preparing: Promise<void> | null = null;
  private failure: { error: unknown; until: number } | null = null;

  constructor(
    private readonly backend: SandboxBackend,
    private readonly callback: SandboxCallback,
    private readonly specs: SandboxSpecs,
    private readonly readiness: Readiness,
    private readonly credentials: CredentialsPlace,
  ) {}

  onModuleInit(): void {
    this.readiness.addPart({
      name: 'sandbox_backend',
      required: false,
      check: () => this.check(),
      adviceWhenLate: ADVICE,
    });
  }

  onApplicationBootstrap(): void {
    this.readyOrFailed().catch((error: unknown) => {
      const detail = isBackendFailure(error) ? { error: error.message } : errorStack(error);
      this.logger.error('failed to prepare sandbox backend', detail);
    });
  }

  /** Waits, so that a stopped service no longer makes folders. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.preparing?.catch(() => undefined);
  }

  /** Nest calls this after the workers have stopped. */
  async onApplicationShutdown(): Promise<void> {
    await this.backend.disconnect();
  }

  /** @throws as `SandboxBackend.prepare` */
  async ready(): Promise<void> {
    this.preparing ??= this.prepare();
    await this.preparing;
  }

  /** Whether sandboxes can run here. The log, and every start of a sandbox, says why not. */
  async isReady(): Promise<boolean> {
    try {
      await this.readyOrFailed();
      return true;
    } catch (error) {
      if (!isBackendFailure(error)) {
        throw error;
      }
      return false;
    }
  }

  /** Asks for a sandbox that does not exist, since the engine may have gone. Most of the API works without it. */
  private async check(): Promise<PartState> {
    try {
      await this.readyOrFailed();
      await this.backend.inspect(NO_SANDBOX);
      return { status: 'ok' };
    } catch (cause) {
      return { status: 'failed', advice: ADVICE, cause };
    }
  }

  /** Does what `ready` does, but remembers a failure for a while. */
  private async readyOrFailed(): Promise<void> {
    if (this.failure !== null && performance.now() < this.failure.until) {
      throw this.failure.error;
    }
    await this.ready();
  }

  private async prepare(): Promise<void> {
    let lines: PreparationLine[];
    try {
      lines = await this.backend.prepare();
      this.failure = null;
    } catch (error) {
      this.failure = { error, until: performance.now() + TRY_AGAIN_MS };
      this.preparing = null;
      throw error;
    }
    const problems = [this.callback.problem, specsProblem(this.specs.all(), this.backend.kind)];
    problems.filter((problem) => problem !== null).forEach((problem) => this.logger.warn(problem));
    this.credentials.decide((runtime) => this.backend.proxyObstacle(runtime));
    const place = this.credentials.line(this.specs.all().map(({ runtime }) => runtime));
    [...lines, place].forEach(({ level, text }) => this.logger[level](text));
  }
}

function isBackendFailure(error: unknown): error is Error {
  return error instanceof SandboxBackendError || error instanceof SandboxBackendUnavailableError;
}

/** Short, because a tool can write a gigabyte in a second. */
const EVERY_MS = 500;

@Injectable()
export class BackendSweeper extends BackgroundLoop {
  /** Removed sandboxes of which some files are left; null before the first sweep. */
  leftovers: number | null = null;

  constructor(
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
  ) {
    super(EVERY_MS, new Logger('Sandboxes'), 'failed to sweep the sandbox backend');
  }

  protected async work(): Promise<void> {
    if (!(await this.readiness.isReady())) {
      return;
    }
    const { leftovers, notices } = await this.backend.sweep();
    this.leftovers = leftovers;
    for (const { level, message, sandboxId, detail } of notices) {
      this.logger[level](message, { sandbox_id: sandboxId, detail });
    }
  }
}
