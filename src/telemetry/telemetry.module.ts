import { Module } from '@nestjs/common';
import { MetricsModule } from '../metrics/metrics.module.js';
import { TelemetryService } from './telemetry.service.js';

@Module({ imports: [MetricsModule], providers: [TelemetryService] })
export class TelemetryModule {}
