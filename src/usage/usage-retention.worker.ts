import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../common/background-loop.js';
import { ModelUsageRepository, USAGE_DAYS } from './model-usage.repository.js';

const EVERY_MS = 6 * 3_600_000;
/** Removed within a fraction of a second. */
const BATCH = 5_000;

/** Removes usage that is older than anyone asks for. Replicas may do so at the same time. */
@Injectable()
export class UsageRetentionWorker extends BackgroundLoop {
  constructor(private readonly usage: ModelUsageRepository) {
    super(EVERY_MS, new Logger('Usage'), 'failed to remove old usage', 'warn');
  }

  protected async work(): Promise<void> {
    let removed = 0;
    for (let batch = BATCH; batch === BATCH && !this.stopping;) {
      batch = await this.usage.prune(BATCH);
      removed += batch;
    }
    if (removed > 0) {
      this.logger.log('old usage removed', { rows: removed, days: USAGE_DAYS });
    }
  }
}
