import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig } from '../../config/app-config.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { BackendReadiness } from './lifecycle/backend-readiness.js';
import { SandboxQuotaQueries } from './sandbox-quota.queries.js';

/** Refuses a second user on a machine that does not isolate sandboxes, unless the operator allows it. */
@Injectable()
export class UserSeparation {
  constructor(
    private readonly config: AppConfig,
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
    private readonly queries: SandboxQuotaQueries,
  ) {}

  /**
   * To be called in the transaction that gives the user a sandbox to run.
   *
   * @throws DomainError forbidden when another user has sandboxes and nothing would separate them
   */
  async check(manager: EntityManager, userId: string): Promise<void> {
    // Where no sandbox can run at all there is nothing to separate; the start says why it fails.
    if (this.config.sandboxes.allowUnsandboxed || !(await this.readiness.isReady())) {
      return;
    }
    if (this.backend.isolation !== 'none') {
      return;
    }
    if (await this.queries.othersHaveSandboxes(manager, userId)) {
      throw new DomainError(
        'forbidden',
        'forbidden',
        'Another user has sandboxes, and nothing separates sandboxes on this machine from each other. The operator can install bubblewrap (SANDBOX_ISOLATION), use SANDBOX_BACKEND=docker, or set ALLOW_UNSANDBOXED=true.',
      );
    }
  }
}
