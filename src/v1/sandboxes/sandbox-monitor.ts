import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../common/repeated-work.js';
import { BackendReadiness } from './backend-readiness.js';
import { SandboxCensus } from './sandbox-census.js';
import { SandboxListeners } from './sandbox-listeners.js';
import { SandboxRepairs } from './sandbox-repairs.js';

/** So that an agent server which dies shows as an error within 5 s. */
const EVERY_MS = 2_000;

/** Compares the sandboxes of this host with what its backend really has, again and again. */
@Injectable()
export class SandboxMonitor implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly loop = new RepeatedWork(
    EVERY_MS,
    () => this.compare(),
    (error) => {
      this.logger.error(
        'sandboxes could not be compared with their rows',
        error instanceof Error ? error.stack : String(error),
      );
    },
  );

  constructor(
    private readonly readiness: BackendReadiness,
    private readonly census: SandboxCensus,
    private readonly repairs: SandboxRepairs,
    private readonly listeners: SandboxListeners,
  ) {}

  /** What ran before this start is looked at before the first request: an earlier address may be another's by now. */
  async onApplicationBootstrap(): Promise<void> {
    this.loop.start();
    if ((await this.census.running()).length > 0) {
      await this.loop.now();
      await Promise.all((await this.census.running()).map((id) => this.listeners.tellRunning(id)));
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
  }

  /** A comparison now, instead of within two seconds. */
  async look(): Promise<void> {
    await this.loop.now();
  }

  private async compare(): Promise<void> {
    if (!(await this.readiness.isReady())) {
      return;
    }
    const differences = await this.census.differences();
    const results = await Promise.allSettled(differences.map((each) => this.repairs.repair(each)));
    const failure = results.find((result) => result.status === 'rejected');
    if (failure) {
      throw failure.reason;
    }
  }
}
