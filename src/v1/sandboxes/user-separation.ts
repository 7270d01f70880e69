import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig } from '../../config/app-config.js';
import { BackendReadiness } from './backend-readiness.js';
import { SandboxBackend } from './backends/sandbox-backend.js';

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
