import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AppConfig } from '../config/app-config.js';
import { AuditRepository } from './audit.repository.js';

const EVERY_MS = 3_600_000;
/** Removed within a fraction of a second. */
const BATCH = 5_000;

/** Removes entries that are older than `AUDIT_RETENTION_DAYS`, on one replica at a time. */
@Injectable()
export class AuditRetentionWorker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Audit');
  private readonly loop = new RepeatedWork(
    EVERY_MS,
    () => this.removeOld(),
    (error) => this.logger.warn('failed to remove old audit entries', { error: errorMessage(error) }),
  );
  private stopping = false;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly audit: AuditRepository,
    private readonly config: AppConfig,
  ) {}

  onApplicationBootstrap(): void {
    if (this.config.database.auditRetentionDays > 0) {
      this.loop.start();
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    await this.loop.stop();
  }

  /** Runs now instead of within the hour. */
  async sweep(): Promise<void> {
    await this.loop.now();
  }

  private async removeOld(): Promise<void> {
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
