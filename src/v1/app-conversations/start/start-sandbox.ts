import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AppConfig } from '../../../config/app-config.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-spec.js';
import { SandboxCreation } from '../../sandboxes/sandbox-creation.js';
import { type SandboxPlace, SandboxQuota } from '../../sandboxes/sandbox-quota.js';
import type { Sandbox } from '../../sandboxes/sandbox.entity.js';
import { type SandboxOverrides, UserOverrides } from '../../sandboxes/user-overrides.js';
import { toLaunch } from '../../sandboxes/lifecycle/launch-plan.js';

/** A conversation that is being started is no idle sandbox: it is held again and again for so long. */
export const HELD_SECONDS = 120;

/** A sandbox as it is going to be. */
export interface SandboxPlan {
  spec: SandboxSpec;
  overrides: SandboxOverrides | null;
  /** What of the settings has no effect here. */
  notes: string[];
  /** Which sandboxes could make room for it (`SandboxQuota.findSpare`). */
  spare: Sandbox[] | null;
}

/** Makes the sandboxes of conversations that name none. */
@Injectable()
export class StartSandboxes {
  constructor(
    private readonly places: SandboxQuota,
    private readonly creation: SandboxCreation,
    private readonly specs: SandboxSpecs,
    private readonly userOverrides: UserOverrides,
    private readonly config: AppConfig,
  ) {}

  /** @param specId null: the default one */
  async plan(userId: string, specId: string | null): Promise<SandboxPlan> {
    const spec = (specId === null ? null : this.specs.find(specId)) ?? this.specs.default;
    const [overrides, spare] = await Promise.all([
      this.userOverrides.find(userId),
      this.places.findEvictable(userId),
    ]);
    const { notes } = toLaunch(spec, overrides, this.config.sandboxes.backend);
    return { spec, overrides, notes, spare };
  }

  /**
   * Makes the row in the caller's transaction, if the user has a place for it. Call `kick` once that is committed.
   *
   * @returns the place; `busy`: one may become free
   * @throws DomainError forbidden when the user may have no sandboxes here
   */
  async make(
    manager: EntityManager,
    { id, userId, hostId }: { id: string; userId: string; hostId: string },
    { spec, overrides, spare }: SandboxPlan,
  ): Promise<SandboxPlace> {
    const place = await this.places.claim(manager, userId, spare, id);
    if (place !== 'busy') {
      const { paused } = place;
      await this.creation.insert(manager, {
        id,
        userId,
        spec,
        overrides,
        hostId,
        heldSeconds: HELD_SECONDS,
        paused,
      });
    }
    return place;
  }

  kick(id: string): void {
    this.creation.kick(id);
  }
}
