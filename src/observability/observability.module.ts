import { Logger, Module } from '@nestjs/common';
import { LeasedWorkModule } from '../database/leased-work.module.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { ProgramMetrics } from './program-metrics.js';
import { MetricsServer } from './metrics.server.js';
import { TelemetryService } from './telemetry.service.js';

@Module({
  imports: [LeasedWorkModule],
  providers: [
    { provide: Metrics, useFactory: () => new Metrics('slipway', new Logger('Metrics')) },
    MetricsServer,
    ProgramMetrics,
    TelemetryService,
  ],
  exports: [Metrics, ProgramMetrics],
})
export class ObservabilityModule {}
