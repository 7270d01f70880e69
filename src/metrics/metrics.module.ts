import { Module } from '@nestjs/common';
import { JobsModule } from '../database/jobs/jobs.module.js';
import { Metrics } from './metrics.js';
import { MetricsServer } from './metrics.server.js';
import { ProgramMetrics } from './program.metrics.js';

/** The metrics of the service; features add their own. */
@Module({
  imports: [JobsModule],
  providers: [Metrics, MetricsServer, ProgramMetrics],
  exports: [Metrics, ProgramMetrics],
})
export class MetricsModule {}
