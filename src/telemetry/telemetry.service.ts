import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { AppConfig } from '../config/app-config.js';
import { Metrics } from '../metrics/metrics.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import type { TelemetryExport } from './telemetry-export.js';

/** Traces and metrics by OpenTelemetry. Without an endpoint no part of it is loaded, and nothing is measured. */
@Injectable()
export class TelemetryService implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly logger = new Logger('Telemetry');
  private running: TelemetryExport | null = null;

  constructor(
    private readonly config: AppConfig,
    private readonly metrics: Metrics,
  ) {
    if (config.telemetry !== null) {
      this.metrics.addGauge({
        name: 'slipway_telemetry_dropped_spans',
        help: 'Spans that never reached the OpenTelemetry collector, since the start of this replica',
        label: 'reason',
        read: async () => new Map(this.running?.dropped ?? []),
      });
    }
  }

  async onModuleInit(): Promise<void> {
    const { telemetry: config, outbound: proxy } = this.config;
    if (config === null) {
      return;
    }
    const { TelemetryExport: Export } = await import('./telemetry-export.js');
    const registry = config.metrics === 'none' ? null : await this.metrics.open();
    const readMetrics = registry === null ? null : () => registry.values();
    this.running = new Export({ config, proxy, readMetrics, logger: this.logger });
    this.logger.log('telemetry export started', {
      endpoint: config.endpoint,
      traces: config.traces,
      metrics: config.metrics,
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.stopMetrics();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.running?.stop();
    this.running = null;
  }
}

@Module({ imports: [MetricsModule], providers: [TelemetryService] })
export class TelemetryModule {}
