import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { IdempotentRequests } from '../idempotency/idempotent-requests.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';
import { SandboxCreation } from './sandbox-creation.js';
import { SandboxPlaces } from './sandbox-places.js';
import { newSandboxId } from './sandbox-session-key.js';
import { SandboxStore } from './sandbox.store.js';
import { UserWishes } from './user-wishes.js';

const SCOPE = 'POST /api/v1/sandboxes';

/** Takes users' orders of new sandboxes. */
@Injectable()
export class SandboxOrders {
  constructor(
    private readonly store: SandboxStore,
    private readonly requests: IdempotentRequests,
    private readonly places: SandboxPlaces,
    private readonly creation: SandboxCreation,
    private readonly wishes: UserWishes,
  ) {}

  /**
   * Claims a place and has a sandbox started in it.
   *
   * @returns the id of the new sandbox, or of the one that an earlier request with this key ordered
   * @throws DomainError rate_limited (`sandbox_limit`) when there is no place
   */
  async order(userId: string, spec: SandboxSpec, idempotencyKey: string | null): Promise<string> {
    const [wishes, spare] = await Promise.all([this.wishes.find(userId), this.places.findSpare(userId)]);
    const requestHash = hash('sha256', JSON.stringify({ spec: spec.id }), 'buffer');
    const { resourceId } = await this.store.transaction((manager) =>
      this.requests.run(manager, userId, SCOPE, idempotencyKey, requestHash, async () => {
        const paused = await this.places.require(manager, userId, spare);
        const id = newSandboxId();
        await this.creation.insert(manager, { id, userId, spec, wishes, heldSeconds: 0, paused });
        return id;
      }),
    );
    this.creation.kick(resourceId);
    return resourceId;
  }
}
