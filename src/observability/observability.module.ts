import { Module } from '@nestjs/common';
import { JobsModule } from '../database/jobs/durable-jobs.js';
import { Metrics, ProgramMetrics } from './metrics.js';
import { MetricsServer } from './metrics.server.js';
import { TelemetryService } from './telemetry.service.js';

@Module({
  imports: [JobsModule],
  providers: [Metrics, MetricsServer, ProgramMetrics, TelemetryService],
  exports: [Metrics, ProgramMetrics],
})
export class ObservabilityModule {}
