import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { AppConfig } from '../config/app-config.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import type { OtlpExport } from '@slipway/telemetry/otlp-export.js';

/** Loads OpenTelemetry's SDK and measures only if an endpoint is configured. */
@Injectable()
export class TelemetryService implements OnModuleInit, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly logger = new Logger('Telemetry');
  private running: OtlpExport | null = null;

  constructor(
    private readonly config: AppConfig,
    private readonly metrics: Metrics,
  ) {
    if (config.telemetry !== null) {
      this.metrics.addGauge({
        name: 'slipway_telemetry_dropped_spans',
        help: 'Spans that never reached the OpenTelemetry collector, since the start of this replica',
        label: 'reason',
        read: async () => this.running?.dropped ?? new Map(),
      });
    }
  }

  async onModuleInit(): Promise<void> {
    const { telemetry: config, outbound: proxy } = this.config;
    if (config === null) {
      return;
    }
    const { OtlpExport: Export } = await import('@slipway/telemetry/otlp-export.js');
    this.running = await Export.start({ config, proxy, metrics: this.metrics, logger: this.logger });
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
