import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../../common/async.js';
import { errorStack } from '../../../common/errors/error-message.js';
import { SandboxBackend } from '../backends/sandbox-backend.js';
import { SandboxEvents } from '../sandbox-events.js';
import { SandboxLeases } from '../sandbox-leases.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { BackendReadiness } from './backend-readiness.js';
import { type Difference, DriftDetector } from './drift.js';
import { FILES_GONE, ExitDiagnosis } from './failure-messages.js';

/** Makes rows and backend agree again. Every repair looks once more before it changes anything. */
@Injectable()
export class DriftRepair {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly store: SandboxRepository,
    private readonly backend: SandboxBackend,
    private readonly leases: SandboxLeases,
    private readonly listeners: SandboxEvents,
    private readonly autopsy: ExitDiagnosis,
  ) {}

  async repair(difference: Difference): Promise<void> {
    const { kind, id } = difference;
    switch (kind) {
      case 'ended':
        return this.ended(id);
      case 'moved':
        return this.moved(id);
      case 'left-over':
        return this.stopLeftOver(id);
      case 'gone':
        return this.gone(id);
      case 'back':
        return this.back(id);
      case 'orphan':
        return this.removeOrphan(id);
    }
  }

  private async ended(id: string): Promise<void> {
    const sandbox = await this.store.find(id);
    if (sandbox?.status !== 'RUNNING') {
      return;
    }
    const cause = await this.autopsy.causeOfEnd(sandbox);
    if (cause === null) {
      return;
    }
    const { generation } = sandbox;
    if (await this.store.move(id, 'fail', { statusDetail: cause }, { status: 'RUNNING', generation })) {
      this.logger.warn('sandbox ended by itself', { sandbox_id: id, detail: cause });
      await this.listeners.emitStopped(id);
    }
  }

  private async moved(id: string): Promise<void> {
    const sandbox = await this.store.find(id);
    const { address, ports } = await this.backend.inspect(id);
    if (sandbox?.status === 'RUNNING' && address !== null) {
      const { generation } = sandbox;
      const change = { address, portAddresses: { generation, addresses: { ...ports } } };
      await this.store.change(id, change, { status: 'RUNNING', generation });
    }
  }

  private async gone(id: string): Promise<void> {
    const sandbox = await this.store.find(id);
    const { state } = await this.backend.inspect(id);
    if (!sandbox || state !== 'missing') {
      return;
    }
    const { status, statusDetail, updatedAt } = sandbox;
    const cause = status === 'ERROR' && statusDetail !== FILES_GONE ? statusDetail : null;
    const detail = cause === null ? FILES_GONE : `${FILES_GONE} Before that: ${cause}`;
    if (await this.store.move(id, 'vanish', { statusDetail: detail }, { status, updatedAt })) {
      this.logger.warn('the files of a sandbox are gone', { sandbox_id: id });
    }
  }

  private async back(id: string): Promise<void> {
    const { state } = await this.backend.inspect(id);
    const detail = 'Its files were not there for a while. Resuming starts it again.';
    if (state !== 'missing' && (await this.store.move(id, 'appear', { statusDetail: detail }))) {
      this.logger.log('the files of a sandbox are there again', { sandbox_id: id });
    }
  }

  /** Under a lease, so that no worker starts it in the meantime. */
  private async stopLeftOver(id: string): Promise<void> {
    if (!(await this.leases.take(id, ['PAUSED', 'ERROR']))) {
      return;
    }
    try {
      await this.backend.pause(id);
      this.logger.warn('stopped a sandbox that ran although its row says otherwise', { sandbox_id: id });
    } finally {
      await this.leases.release(id);
    }
  }

  private async removeOrphan(id: string): Promise<void> {
    if ((await this.store.read(id)) === null) {
      await this.backend.remove(id);
      this.logger.log('removed a sandbox that no row knows', { sandbox_id: id });
    }
  }
}

/** So that an agent server which dies shows as an error within 5 s. */
const EVERY_MS = 2_000;
/** Of the differences that take long: a program is stopped, or files are removed. */
const SLOW = new Set<Difference['kind']>(['left-over', 'orphan']);

/** Compares the sandboxes of this host with what its backend really has, again and again. */
@Injectable()
export class SandboxReconciler implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly loop = new RepeatedWork(
    EVERY_MS,
    () => this.compare(),
    (error) => {
      this.logger.error('sandboxes could not be compared with their rows', errorStack(error));
    },
  );

  /** Slow repairs that go on while comparisons do, by sandbox. */
  private readonly ongoing = new Map<string, Promise<void>>();
  private slowFailure: { reason: unknown } | null = null;

  constructor(
    private readonly readiness: BackendReadiness,
    private readonly census: DriftDetector,
    private readonly repairs: DriftRepair,
    private readonly listeners: SandboxEvents,
  ) {}

  /** What ran before this start is looked at before the first request: an earlier address may be another's by now. */
  async onApplicationBootstrap(): Promise<void> {
    this.loop.start();
    if ((await this.census.running()).length > 0) {
      await this.loop.now();
      await Promise.all((await this.census.running()).map((id) => this.listeners.emitRunning(id)));
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
