import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { AppConfig } from '../../../config/app-config.js';
import { EventPartitionRepository } from './event-partition.repository.js';

const EVERY_MS = 3_600_000;
/** Enough to survive a time in which the database cannot be changed. */
const DAYS_AHEAD = 75;
const BATCH = 5_000;

/** Creates coming partitions, and drops those past `EVENT_RETENTION_DAYS`. Events are stored even if it fails. */
@Injectable()
export class EventRetentionWorker extends BackgroundLoop implements OnModuleInit {
  private stopping = false;

  constructor(
    private readonly partitions: EventPartitionRepository,
    private readonly config: AppConfig,
  ) {
    super(EVERY_MS, new Logger('Events'), 'failed to maintain event partitions', 'warn');
  }

  /** Must run before anything is stored: a month with events in the default partition cannot get its own. */
  async onModuleInit(): Promise<void> {
    await this.now();
  }

  override async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    await super.beforeApplicationShutdown();
  }

  protected async work(): Promise<void> {
    for (const name of await this.partitions.createUntil(DAYS_AHEAD)) {
      this.logger.log('event partition created', { partition: name });
    }
    const { eventRetentionDays: days } = this.config.database;
    if (days > 0) {
      await this.removeOld(days);
    }
  }

  private async removeOld(days: number): Promise<void> {
    for (let dropped = await this.partitions.dropOldest(days); dropped !== null && !this.stopping;) {
      this.logger.log('event partition dropped', { partition: dropped, days });
      dropped = await this.partitions.dropOldest(days);
    }
    let removed = 0;
    for (let batch = BATCH; batch === BATCH && !this.stopping;) {
      batch = await this.partitions.pruneDefault(days, BATCH);
      removed += batch;
    }
    if (removed > 0) {
      this.logger.log('old events without a partition removed', { events: removed, days });
    }
  }
}
