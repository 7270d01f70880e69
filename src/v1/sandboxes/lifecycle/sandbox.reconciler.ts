import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { jittered } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AuditRepository } from '../../../audit/audit.repository.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import { SandboxBackend, SandboxFilesLeftError } from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxEvents } from '../sandbox-events.js';
import { SandboxKeyQueries } from '../sandbox-key.guard.js';
import { OrphanedSandboxRepository, SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { sessionKeyBinding, sessionKeyHash } from '../session-key.js';
import { WarmSandboxRepository } from '../warm/warm-sandbox.repository.js';
import { BackendReadiness } from './backend-readiness.js';
import { type Drift, DriftDetector, isLeft } from './drift.js';
import { endedByItself, FILES_GONE, madeByOtherBackend } from './exit-diagnosis.js';
import { SandboxEgress } from './egress-access.js';
import { requireAddresses } from './sandbox-starter.js';

/** Short enough that an agent server which dies shows as an error within 5 s. */
const EVERY_MS = 2_000;
/** While no sandbox of this host runs. */
const IDLE_MS = 10_000;
/** Reported changes come in groups; short enough that each shows within a second. */
const AFTER_CHANGE_MS = 100;
const SLOW = new Set<Drift['kind']>(['left-over', 'orphan']);

/**
 * Compares this host's sandboxes with its backend and repairs the differences; every repair looks again first. Fails
 * those, too, that send more than the service accepts: their program then runs against its row.
 */
@Injectable()
export class SandboxReconciler extends BackgroundLoop implements OnModuleInit {
  private readonly repairs: Record<Drift['kind'], (id: string) => Promise<void>> = {
    ended: (id) => this.fail(id),
    moved: (id) => this.updateAddress(id),
    'left-over': (id) => this.stopLeftOver(id),
    gone: (id) => this.markMissing(id),
    back: (id) => this.markPaused(id),
    orphan: (id) => this.removeOrphan(id),
  };
  private readonly slowRepairs = new Set<string>();
  /** Orphans whose removal goes on after its audit entry. */
  private readonly auditedOrphans = new Set<string>();
  private slowFailure: { reason: unknown } | null = null;

  constructor(
    private readonly readiness: BackendReadiness,
    private readonly drift: DriftDetector,
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly orphans: OrphanedSandboxRepository,
    private readonly backend: SandboxBackend,
    private readonly cipher: SecretCipher,
    private readonly events: SandboxEvents,
    private readonly audit: AuditRepository,
    private readonly warm: WarmSandboxRepository,
    private readonly http: AgentServerHttp,
    private readonly keys: SandboxKeyQueries,
    private readonly specs: SandboxSpecs,
    private readonly egress: SandboxEgress,
  ) {
    super(EVERY_MS, new Logger('Sandboxes'), 'failed to reconcile sandboxes with the backend');
  }

  onModuleInit(): void {
    this.http.onBreach(({ sessionKey }, detail) => {
      this.failForBreach(sessionKey, detail).catch((error: unknown) =>
        this.logger.error('failed to end a sandbox that broke a rule', { error: errorMessage(error) }),
      );
    });
  }

  /** Before the first request: the address of a sandbox that ran earlier may belong to something else by now. */
  override async onApplicationBootstrap(): Promise<void> {
    this.loop.start();
    this.backend.onChange(() => this.loop.within(AFTER_CHANGE_MS));
    this.events.on('running', () => this.loop.within(EVERY_MS));
    const earlier = await this.lifecycle.runningIds();
    if (earlier.length > 0) {
      await this.loop.now();
      await Promise.all(earlier.map((id) => this.pauseOutOfRules(id)));
      const ids = await this.lifecycle.runningIds();
      await Promise.all(ids.map((id) => this.events.emit('running', id)));
    }
  }

  protected async work(): Promise<number | void> {
    if (!(await this.readiness.isReady())) {
      return;
    }
    const found = await this.drift.detect();
    found.filter(({ kind }) => SLOW.has(kind)).forEach((each) => this.repairSlowly(each));
    const results = await Promise.allSettled(
      found.filter(({ kind }) => !SLOW.has(kind)).map(({ kind, id }) => this.repairs[kind](id)),
    );
    const failure = results.find((result) => result.status === 'rejected') ?? this.slowFailure;
    this.slowFailure = null;
    if (failure) {
      throw failure.reason;
    }
    return this.drift.isQuiet ? jittered(IDLE_MS) : undefined;
  }

  /** Returns at once, because other sandboxes may exit meanwhile. The next comparison throws its error. */
  private repairSlowly({ kind, id }: Drift): void {
    if (this.slowRepairs.has(id)) {
      return;
    }
    const repair = async (): Promise<void> => {
      try {
        await this.repairs[kind](id);
      } catch (error) {
        this.slowFailure = { reason: error };
      } finally {
        this.slowRepairs.delete(id);
      }
    };
    this.slowRepairs.add(id);
    this.beside(repair());
  }

  private async fail(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    if (sandbox?.status !== 'RUNNING') {
      return;
    }
    const cause = await this.diagnose(sandbox);
    if (cause !== null) {
      await this.failAsSeen(sandbox, cause, 'sandbox exited by itself');
    }
  }

  /** The cause in words for people; null when the sandbox runs after all. */
  private async diagnose({ id, backend, sessionKey }: Sandbox): Promise<string | null> {
    if (backend !== this.backend.kind) {
      return madeByOtherBackend(backend, this.backend.kind);
    }
    const facts = await this.backend.inspect(id);
    if (facts.state === 'running') {
      return null;
    }
    const log = await this.backend.logTail(id);
    return endedByItself({ facts, log, sessionKey: this.cipher.decrypt(sessionKey, sessionKeyBinding(id)) });
  }

  /** Unless the sandbox was started again meanwhile, under another key. */
  private async failForBreach(sessionKey: string, detail: string): Promise<void> {
    const holder = await this.keys.find(sessionKey);
    const sandbox = holder && (await this.sandboxes.find(holder.sandboxId));
    if (sandbox?.sessionKeyHash.equals(sessionKeyHash(sessionKey))) {
      await this.failAsSeen(sandbox, detail, 'sandbox broke a rule', 'broke_a_rule');
    }
  }

  private async failAsSeen(
    { id, generation }: Pick<Sandbox, 'id' | 'generation'>,
    detail: string,
    message: string,
    cause?: 'broke_a_rule',
  ): Promise<void> {
    const change = { statusDetail: detail };
    const condition = { status: 'RUNNING' as const, generation };
    if (await this.sandboxes.transition(id, 'fail', { change, condition, cause })) {
      this.logger.warn(message, { sandbox_id: id, detail });
      await this.events.emit('stopped', id);
    }
  }

  /** Pauses a sandbox whose rules have come or gone: its network, open or with no way but the proxy, was made when it started. */
  private async pauseOutOfRules(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    const spec = sandbox && this.specs.find(sandbox.specId);
    if (!spec || !this.egress.isOutdated(spec, sandbox)) {
      return;
    }
    const statusDetail =
      'Paused because the rules about what it may reach (SANDBOX_EGRESS) have come or gone since its start, or where credentials are (SANDBOX_CREDENTIALS) has changed. Resume it.';
    const condition = { status: 'RUNNING' as const, generation: sandbox.generation };
    if (
      await this.sandboxes.transition(id, 'pause', { change: { statusDetail }, condition, cause: 'rules' })
    ) {
      this.logger.warn('sandbox paused: its rules have come or gone', { sandbox_id: id });
    }
  }

  private async updateAddress(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    const facts = await this.backend.inspect(id);
    const { address, ports } = facts;
    if (sandbox?.status !== 'RUNNING' || address === null) {
      return;
    }
    const { generation } = sandbox;
    try {
      requireAddresses(facts);
    } catch (error) {
      // The program goes on until the next comparison finds that its row says ERROR.
      await this.failAsSeen(sandbox, errorMessage(error), 'sandbox reported an invalid address');
      return;
    }
    const change = { address, portAddresses: { generation, addresses: { ...ports } } };
    await this.sandboxes.update(id, change, { status: 'RUNNING', generation });
  }

  private async markMissing(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    const { state } = await this.backend.inspect(id);
    if (!sandbox || state !== 'missing') {
      return;
    }
    const { status, statusDetail, updatedAt } = sandbox;
    const cause = status === 'ERROR' && statusDetail !== FILES_GONE ? statusDetail : null;
    const detail = cause === null ? FILES_GONE : `${FILES_GONE} Before that: ${cause}`;
    const asSeen = { status, updatedAt };
    if (
      await this.sandboxes.transition(id, 'vanish', { change: { statusDetail: detail }, condition: asSeen })
    ) {
      this.logger.warn('sandbox files are missing', { sandbox_id: id });
    }
  }

  private async markPaused(id: string): Promise<void> {
    const { state } = await this.backend.inspect(id);
    const statusDetail = 'Its files were not there for a while. Resuming starts it again.';
    if (
      state !== 'missing' &&
      (await this.sandboxes.transition(id, 'appear', { change: { statusDetail } }))
    ) {
      this.logger.log('sandbox files found again', { sandbox_id: id });
    }
  }

  /** The lease keeps workers from starting it meanwhile. */
  private async stopLeftOver(id: string): Promise<void> {
    if (!(await this.lifecycle.take(id, ['PAUSED', 'ERROR']))) {
      return;
    }
    try {
      // Another replica may have stopped it since it was listed.
      if (!isLeft(await this.backend.inspect(id))) {
        return;
      }
      await this.backend.pause(id);
      this.logger.warn('left-over sandbox stopped: its row says that it does not run', { sandbox_id: id });
    } finally {
      await this.lifecycle.release(id);
    }
  }

  private async removeOrphan(id: string): Promise<void> {
    // A claim moves it from the first table to the second, so the order matters.
    const hasRow = (await this.warm.exists(id)) || (await this.sandboxes.read(id)) !== null;
    if (hasRow || !(await this.orphans.claim(id))) {
      return;
    }
    try {
      await this.auditOrphan(id);
      await this.backend.remove(id);
      this.auditedOrphans.delete(id);
      this.logger.log('orphaned sandbox removed', { sandbox_id: id });
    } catch (error) {
      await this.orphans.release(id);
      // The backend's sweeps go on with the files, and log them.
      if (!(error instanceof SandboxFilesLeftError)) {
        throw error;
      }
    }
  }

  /** Only the first try is audited: a failed removal is repeated every two seconds. */
  private async auditOrphan(id: string): Promise<void> {
    if (this.auditedOrphans.has(id)) {
      return;
    }
    await this.sandboxes.transaction((manager) =>
      this.audit.append(manager, {
        action: 'sandbox.remove_orphan',
        outcome: 'requested',
        resourceId: id,
        ownerId: null,
        by: 'service',
      }),
    );
    this.auditedOrphans.add(id);
  }
}
