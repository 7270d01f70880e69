import { Injectable } from '@nestjs/common';
import { type EntityManager, In, Not } from 'typeorm';
import { lockUser } from '../../auth/lock-user.js';
import { AppConfig } from '../../config/app-config.js';
import { SandboxIdleness } from './sandbox-idleness.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { allSandboxesBusy } from './sandbox-problems.js';
import { Sandbox } from './sandbox.entity.js';
import { SandboxStore } from './sandbox.store.js';
import { UserSeparation } from './user-separation.js';

/** `free`: there was a place; `paused`: this idle sandbox gave up its place; `busy`: there is none. */
export type SandboxPlace = 'free' | 'busy' | { paused: string };

/** Sees that a user has at most `MAX_RUNNING_SANDBOXES` starting or running. */
@Injectable()
export class SandboxPlaces {
  constructor(
    private readonly config: AppConfig,
    private readonly store: SandboxStore,
    private readonly idleness: SandboxIdleness,
    private readonly separation: UserSeparation,
    private readonly kicks: SandboxKicks,
  ) {}

  /**
   * Makes room for one more sandbox of the user: where all places are taken, the longest idle one is paused.
   *
   * @param manager the transaction that starts a sandbox in the place: until it ends no other request of the user gets
   *   it (call `SandboxCreation.kick` afterwards). Null: only makes room, in a transaction of its own
   * @param exceptSandboxId the sandbox that the place is for, when it has a row already
   * @throws DomainError forbidden when the user may have no sandboxes here
   */
  async claim(
    manager: EntityManager | null,
    userId: string,
    exceptSandboxId: string | null = null,
  ): Promise<SandboxPlace> {
    if (manager === null) {
      const place = await this.store.transaction((own) => this.claim(own, userId, exceptSandboxId));
      this.kicks.kick();
      return place;
    }
    // Agent servers are asked before the lock is taken: others of the user's requests need not wait for that.
    const before = await taken(manager, userId, exceptSandboxId);
    const idle = this.surplus(before) > 0 ? await this.idleness.idle(before) : null;
    // In this order, as where a repeatable request has locked the user before: two that lock crosswise fail.
    await lockUser(manager, userId);
    await this.separation.check(manager, userId);
    const now = await taken(manager, userId, exceptSandboxId);
    const surplus = this.surplus(now);
    if (surplus <= 0) {
      return 'free';
    }
    return this.pauseIdle(manager, idle ?? (await this.idleness.idle(now)), surplus);
  }

  /**
   * Like `claim`, where waiting for a place is not possible.
   *
   * @throws DomainError rate_limited (`sandbox_limit`) when there is none
   */
  async require(
    manager: EntityManager,
    userId: string,
    exceptSandboxId: string | null = null,
  ): Promise<void> {
    if ((await this.claim(manager, userId, exceptSandboxId)) === 'busy') {
      throw allSandboxesBusy(this.config.sandboxes.maxRunning);
    }
  }

  /** How many would have to go for one more to come. */
  private surplus(rows: readonly Sandbox[]): number {
    return rows.length - this.config.sandboxes.maxRunning + 1;
  }

  private async pauseIdle(
    manager: EntityManager,
    idle: readonly Sandbox[],
    surplus: number,
  ): Promise<SandboxPlace> {
    if (idle.length < surplus) {
      return 'busy';
    }
    const paused: string[] = [];
    for (const { id, generation, lastActivityAt } of idle) {
      if (paused.length === surplus) {
        break;
      }
      // Unless something began in it since it was looked at.
      const gone = await this.store.move(
        id,
        'pause',
        {
          statusDetail: `Paused to make room: at most ${this.config.sandboxes.maxRunning} may run at a time.`,
        },
        { status: 'RUNNING', generation, lastActivityAt },
        manager,
      );
      if (gone) {
        paused.push(id);
      }
    }
    const [first] = paused;
    return first === undefined || paused.length < surplus ? 'busy' : { paused: first };
  }
}

function taken(manager: EntityManager, userId: string, exceptId: string | null): Promise<Sandbox[]> {
  return manager.getRepository(Sandbox).findBy({
    userId,
    status: In(['STARTING', 'RUNNING']),
    ...(exceptId !== null && { id: Not(exceptId) }),
  });
}
