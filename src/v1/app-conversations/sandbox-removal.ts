import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { SandboxCreation } from '../sandboxes/sandbox-creation.js';
import { SandboxStore } from '../sandboxes/sandbox.store.js';

/** Locked, so that of two removals of a sandbox's last two conversations the second one sees the first. */
const LOCK = 'SELECT id FROM sandboxes WHERE id = $1 AND user_id = $2 FOR UPDATE';

const IS_USED = `
  SELECT EXISTS (SELECT FROM app_conversations WHERE sandbox_id = $1)
    OR EXISTS (
      SELECT FROM app_conversation_start_tasks WHERE sandbox_id = $1 AND status NOT IN ('READY', 'ERROR')
    ) AS used`;

/** Removes the sandboxes that conversations leave behind. */
@Injectable()
export class SandboxRemoval {
  constructor(
    private readonly store: SandboxStore,
    private readonly creation: SandboxCreation,
  ) {}

  /**
   * Has a sandbox removed that no conversation uses, nor one that is being started; from every status.
   *
   * @returns whether it goes; call `kick` once that is committed
   */
  async removeIfUnused(manager: EntityManager, userId: string, sandboxId: string): Promise<boolean> {
    const locked = await manager.query<unknown[]>(LOCK, [sandboxId, userId]);
    if (locked.length === 0) {
      return false;
    }
    const [row] = await manager.query<{ used: boolean }[]>(IS_USED, [sandboxId]);
    return (
      row?.used === false &&
      (await this.store.move(sandboxId, 'remove', { deadlineAt: null }, { userId }, manager))
    );
  }

  /** Has the removal begun at once; without it the next sweep finds it. */
  kick(sandboxId: string): void {
    this.creation.kick(sandboxId);
  }
}
