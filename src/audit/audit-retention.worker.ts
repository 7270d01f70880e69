import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { BackgroundLoop } from '../common/background-loop.js';
import { AppConfig } from '../config/app-config.js';
import { AuditRepository } from './audit.repository.js';

const EVERY_MS = 3_600_000;
/** Removed within a fraction of a second. */
const BATCH = 5_000;

/** Removes entries that are older than `AUDIT_RETENTION_DAYS`, on one replica at a time. */
@Injectable()
export class AuditRetentionWorker extends BackgroundLoop {
  constructor(
    private readonly dataSource: DataSource,
    private readonly audit: AuditRepository,
    private readonly config: AppConfig,
  ) {
    super(EVERY_MS, new Logger('Audit'), 'failed to remove old audit entries', 'warn');
  }

  protected async work(): Promise<void> {
    const { auditRetentionDays: days } = this.config.database;
    let removed = 0;
    for (let batch: number | null = days === 0 ? 0 : BATCH; batch === BATCH && !this.stopping;) {
      batch = await this.audit.prune(this.dataSource.manager, days, BATCH);
      removed += batch ?? 0;
    }
    if (removed > 0) {
      this.logger.log('old audit entries removed', { entries: removed, days });
    }
  }
}
