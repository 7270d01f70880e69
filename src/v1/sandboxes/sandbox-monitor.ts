import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../common/repeated-work.js';
import { BackendReadiness } from './backend-readiness.js';
import type { Difference } from './reconcile.js';
import { SandboxCensus } from './sandbox-census.js';
import { SandboxListeners } from './sandbox-listeners.js';
import { SandboxRepairs } from './sandbox-repairs.js';

/** So that an agent server which dies shows as an error within 5 s. */
const EVERY_MS = 2_000;
/** Of the differences that take long: a program is stopped, or files are removed. */
const SLOW = new Set<Difference['kind']>(['left-over', 'orphan']);

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

  /** Slow repairs that go on while comparisons do, by sandbox. */
  private readonly ongoing = new Map<string, Promise<void>>();
  private slowFailure: { reason: unknown } | null = null;

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
    await Promise.all(this.ongoing.values());
  }

  /** A comparison now, instead of within two seconds, with all repairs. */
  async look(): Promise<void> {
    await this.loop.now();
    await Promise.all(this.ongoing.values());
  }

  private async compare(): Promise<void> {
    if (!(await this.readiness.isReady())) {
      return;
    }
    const differences = await this.census.differences();
    differences.filter(({ kind }) => SLOW.has(kind)).forEach((each) => this.repairSlowly(each));
    const results = await Promise.allSettled(
      differences.filter(({ kind }) => !SLOW.has(kind)).map((each) => this.repairs.repair(each)),
    );
    const failure = results.find((result) => result.status === 'rejected') ?? this.slowFailure;
    this.slowFailure = null;
    if (failure) {
      throw failure.reason;
    }
  }

  /** Nobody waits: meanwhile other sandboxes may end, and the service may listen. A failure is told with the next comparison. */
  private repairSlowly(difference: Difference): void {
    const { id } = difference;
    if (this.ongoing.has(id)) {
      return;
    }
    const repair = async (): Promise<void> => {
      try {
        await this.repairs.repair(difference);
      } catch (error) {
        this.slowFailure = { reason: error };
      } finally {
        this.ongoing.delete(id);
      }
    };
    this.ongoing.set(id, repair());
  }
}
