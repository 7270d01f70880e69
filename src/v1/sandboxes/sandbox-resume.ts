import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { pausedNotes } from './paused-notes.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { SandboxPlaces } from './sandbox-places.js';
import { unknownSandbox } from './sandbox-problems.js';
import { statusAfter } from './sandbox-transitions.js';
import { SandboxStore } from './sandbox.store.js';

/** Brings sandboxes back: from a pause, and from an error. */
@Injectable()
export class SandboxResume {
  constructor(
    private readonly store: SandboxStore,
    private readonly places: SandboxPlaces,
    private readonly kicks: SandboxKicks,
    private readonly clock: Clock,
  ) {}

  /**
   * Has the sandbox started again, in a place that is claimed for it; nothing happens when it starts or runs already.
   *
   * @param userId its owner; null: whoever that is
   * @returns the ids of sandboxes that were paused to make room; while it starts its `status_detail` names them
   * @throws DomainError not_found for an unknown sandbox
   * @throws DomainError rate_limited (`sandbox_limit`) when there is no place
   */
  async request(userId: string | null, id: string): Promise<readonly string[]> {
    const sandbox = await this.store.find(id, userId);
    if (!sandbox) {
      throw unknownSandbox();
    }
    if (statusAfter('resume', sandbox.status) === null) {
      return [];
    }
    const now = this.clock.now();
    const spare = await this.places.findSpare(sandbox.userId, id);
    const paused = await this.store.transaction(async (manager) => {
      const ids = await this.places.require(manager, sandbox.userId, spare, id);
      await this.store.move(
        id,
        'resume',
        {
          statusDetail: pausedNotes(ids).join(' ') || null,
          lastActivityAt: new Date(now),
        },
        {},
        manager,
      );
      return ids;
    });
    this.kicks.kick();
    return paused;
  }
}
