import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { SandboxPlaces } from './sandbox-places.js';
import { unknownSandbox } from './sandbox-problems.js';
import { deadlineSeconds, statusAfter } from './sandbox-transitions.js';
import { SandboxStore } from './sandbox.store.js';

/** Of a specification that the operator has removed since; the start then says so. */
const DEFAULT_START_SECONDS = 60;

/** Brings sandboxes back: from a pause, and from an error. */
@Injectable()
export class SandboxResume {
  constructor(
    private readonly store: SandboxStore,
    private readonly places: SandboxPlaces,
    private readonly kicks: SandboxKicks,
    private readonly specs: SandboxSpecs,
    private readonly clock: Clock,
  ) {}

  /**
   * Has the sandbox started again, in a place that is claimed for it; nothing happens when it starts or runs already.
   *
   * @param userId its owner; null: whoever that is
   * @throws DomainError not_found for an unknown sandbox
   * @throws DomainError rate_limited (`sandbox_limit`) when all places of the owner are taken by busy ones
   */
  async request(userId: string | null, id: string): Promise<void> {
    const sandbox = await this.store.find(id, userId);
    if (!sandbox) {
      throw unknownSandbox();
    }
    if (statusAfter('resume', sandbox.status) === null) {
      return;
    }
    const now = this.clock.now();
    const limit = this.specs.find(sandbox.specId)?.startTimeoutSeconds ?? DEFAULT_START_SECONDS;
    const seconds = deadlineSeconds('STARTING', limit) ?? limit;
    await this.store.transaction(async (manager) => {
      await this.places.require(manager, sandbox.userId, id);
      await this.store.move(
        id,
        'resume',
        {
          statusDetail: null,
          address: null,
          deadlineAt: new Date(now + seconds * 1000),
          lastActivityAt: new Date(now),
        },
        {},
        manager,
      );
    });
    this.kicks.kick();
  }
}
