import { Injectable } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, type EntityManager, In, Not, Repository } from 'typeorm';
import { lockUser } from '../../auth/user.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig, type SandboxConfig } from '../../config/app-config.js';
import { NamedStatement } from '../../database/named-statement.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { BackendReadiness } from './lifecycle/backend-readiness.js';
import { SandboxIdleness } from './lifecycle/idleness.js';
import { Sandbox } from './sandbox.entity.js';
import { SandboxRepository } from './sandbox.repository.js';

/** Any number that no other advisory lock of ours has. */
const LOCK = 7_305_218_441;

/** Keeps a second user away from sandboxes that nothing separates, unless the operator wants that. */
@Injectable()
export class UserSeparation {
  constructor(
    private readonly config: AppConfig,
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
  ) {}

  /**
   * To be asked in the transaction that gives the user a sandbox to run.
   *
   * @throws DomainError forbidden when another user has sandboxes already and nothing would separate them
   */
  async check(manager: EntityManager, userId: string): Promise<void> {
    // Where no sandbox can run at all the start says why; there is nothing to keep apart.
    if (this.config.sandboxes.allowUnsandboxed || !(await this.readiness.isReady())) {
      return;
    }
    if (this.backend.isolation !== 'none') {
      return;
    }
    // Two users who start their first sandboxes at the same time take turns.
    await manager.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    const others = await manager.query<unknown[]>('SELECT 1 FROM sandboxes WHERE user_id <> $1 LIMIT 1', [
      userId,
    ]);
    if (others.length > 0) {
      throw new DomainError(
        'forbidden',
        'forbidden',
        'Another user has sandboxes, and nothing separates sandboxes on this machine from each other. The operator can install bubblewrap (SANDBOX_ISOLATION), use SANDBOX_BACKEND=docker, or set ALLOW_UNSANDBOXED=true.',
      );
    }
  }
}

const COUNT_TAKEN = new NamedStatement<{ count: number }>(
  'sandboxes_count_taken',
  `SELECT count(*)::int AS count FROM sandboxes
   WHERE user_id = $1 AND status IN ('STARTING', 'RUNNING') AND id <> $2`,
);

/** `paused`: there is a place, for which these idle sandboxes gave up theirs, mostly none; `busy`: there is none. */
export type SandboxPlace = 'busy' | { paused: readonly string[] };

/** Ends the savepoint of pauses that do not make enough room. */
class TooFewPaused extends Error {}

/**
 * Sees that a user has at most `MAX_RUNNING_SANDBOXES` starting or running. What happens to one more is
 * `SANDBOX_LIMIT_POLICY`'s.
 */
@Injectable()
export class SandboxQuota {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly config: AppConfig,
    private readonly store: SandboxRepository,
    private readonly idleness: SandboxIdleness,
    private readonly separation: UserSeparation,
  ) {}

  /**
   * Looks for sandboxes that could give up their places. To be called before the transaction of `claim`: agent servers
   * are asked, which may take seconds.
   *
   * @param exceptSandboxId as for `claim`
   * @returns idle ones, the longest idle first; null while there is a free place
   */
  async findEvictable(userId: string, exceptSandboxId: string | null = null): Promise<Sandbox[] | null> {
    const counted = await COUNT_TAKEN.run(this.dataSource, [userId, exceptSandboxId ?? '']);
    return this.surplus(counted) > 0 ? await this.idle(this.sandboxes, userId, exceptSandboxId) : null;
  }

  /**
   * Refuses early what `claim` would find no place for, where nothing makes room: what is idle by then may do so
   * otherwise.
   *
   * @throws DomainError rate_limited (`sandbox_limit`)
   */
  async expect(manager: EntityManager, userId: string): Promise<void> {
    const { sandboxes } = this.config;
    if (
      sandboxes.limitPolicy === 'reject' &&
      this.surplus(await COUNT_TAKEN.within(manager, [userId, ''])) > 0
    ) {
      throw quotaExceeded(sandboxes);
    }
  }

  /**
   * Makes room for one more sandbox of the user: where all places are taken, the longest idle one is paused, if the
   * policy is that.
   *
   * @param manager the transaction that starts a sandbox in the place: until it ends no other request of the user gets
   *   it (call `SandboxCreation.kick` afterwards)
   * @param spare what `findSpare` found
   * @param exceptSandboxId the sandbox that the place is for, when it has a row already
   * @throws DomainError forbidden when the user may have no sandboxes here
   */
  async claim(
    manager: EntityManager,
    userId: string,
    spare: readonly Sandbox[] | null,
    exceptSandboxId: string | null = null,
  ): Promise<SandboxPlace> {
    // In this order, as where a repeatable request has locked the user before: two that lock crosswise fail.
    await lockUser(manager, userId);
    await this.separation.check(manager, userId);
    const surplus = this.surplus(await COUNT_TAKEN.within(manager, [userId, exceptSandboxId ?? '']));
    if (surplus <= 0) {
      return { paused: [] };
    }
    // Only one that lost the last place just now has to ask while others wait.
    const idle = spare ?? (await this.idle(manager.getRepository(Sandbox), userId, exceptSandboxId));
    return this.pauseIdle(manager, idle, surplus);
  }

  /**
   * Like `claim`, where waiting for a place is not possible.
   *
   * @returns the ids of the idle sandboxes that gave up their places
   * @throws DomainError rate_limited (`sandbox_limit`) when there is none
   */
  async require(
    manager: EntityManager,
    userId: string,
    spare: readonly Sandbox[] | null,
    exceptSandboxId: string | null = null,
  ): Promise<readonly string[]> {
    const place = await this.claim(manager, userId, spare, exceptSandboxId);
    if (place === 'busy') {
      throw quotaExceeded(this.config.sandboxes);
    }
    return place.paused;
  }

  /** How many would have to go for one more to come. */
  private surplus([taken]: readonly { count: number }[]): number {
    return (taken?.count ?? 0) - this.config.sandboxes.maxRunning + 1;
  }

  /** Those that may be paused. */
  private async idle(
    sandboxes: Pick<Repository<Sandbox>, 'findBy'>,
    userId: string,
    exceptId: string | null,
  ): Promise<Sandbox[]> {
    if (this.config.sandboxes.limitPolicy === 'reject') {
      return [];
    }
    const status = In(['STARTING', 'RUNNING']);
    return this.idleness.idle(
      await sandboxes.findBy({ userId, status, ...(exceptId !== null && { id: Not(exceptId) }) }),
    );
  }

  /** As many as are too many, or none: nobody's is paused for nothing. */
  private async pauseIdle(
    manager: EntityManager,
    idle: readonly Sandbox[],
    surplus: number,
  ): Promise<SandboxPlace> {
    if (idle.length < surplus) {
      return 'busy';
    }
    try {
      return { paused: await manager.transaction((savepoint) => this.pause(savepoint, idle, surplus)) };
    } catch (error) {
      if (error instanceof TooFewPaused) {
        return 'busy';
      }
      throw error;
    }
  }

  /** @throws TooFewPaused */
  private async pause(manager: EntityManager, idle: readonly Sandbox[], surplus: number): Promise<string[]> {
    const { maxRunning } = this.config.sandboxes;
    const statusDetail = `Paused to make room: at most ${maxRunning} may run at a time.`;
    const paused: string[] = [];
    for (const { id, generation, lastActivityAt } of idle) {
      // Unless something began in it since it was looked at.
      const unchanged = { status: 'RUNNING' as const, generation, lastActivityAt };
      if (await this.store.move(id, 'pause', { statusDetail }, unchanged, manager)) {
        paused.push(id);
      }
      if (paused.length === surplus) {
        return paused;
      }
    }
    throw new TooFewPaused();
  }
}

/** A place may become free at any time; asking more often than this helps nobody. */
const RETRY_SECONDS = 30;

/** 404: the id is of no sandbox, or of another user's. */
export function unknownSandbox(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no sandbox with this id.');
}

/** 429: all places are taken, and none of those who have them makes room. */
export function quotaExceeded({
  maxRunning,
  limitPolicy,
}: Pick<SandboxConfig, 'maxRunning' | 'limitPolicy'>): DomainError {
  return new DomainError(
    'rate_limited',
    'sandbox_limit',
    limitPolicy === 'reject'
      ? `As many of your sandboxes run as may at a time (${maxRunning}). Pause or delete one, then try again.`
      : `All ${maxRunning} sandboxes that may run at a time are busy. Pause or delete one, or wait until one is idle.`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}
