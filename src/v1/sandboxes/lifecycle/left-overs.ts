import { Injectable, Logger } from '@nestjs/common';
import { AuditRepository } from '../../../audit/audit.repository.js';
import { SandboxBackend, SandboxFilesLeftError } from '@slipway/sandboxes/sandbox-backend.js';
import { OrphanedSandboxRepository, SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { WarmSandboxRepository } from '../warm/warm-sandbox.repository.js';
import { isLeft } from './drift.js';

/** Ends what the backend has against the rows: programs of stopped sandboxes, and sandboxes without a row (orphans). */
@Injectable()
export class LeftOvers {
  private readonly logger = new Logger('Sandboxes');
  /** Orphans whose removal goes on after its audit entry. */
  private readonly auditedOrphans = new Set<string>();

  constructor(
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly backend: SandboxBackend,
    private readonly sandboxes: SandboxRepository,
    private readonly warm: WarmSandboxRepository,
    private readonly orphans: OrphanedSandboxRepository,
    private readonly audit: AuditRepository,
  ) {}

  /** The lease keeps workers from starting it meanwhile. */
  async stop(id: string): Promise<void> {
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

  async removeOrphan(id: string): Promise<void> {
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
