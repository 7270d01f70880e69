import type { PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import { bypassesProxy } from '@slipway/common/http/address-rules.js';
import type { OutboundConfig } from '../config/app-config.js';
import type { TelemetryConfig } from '../config/telemetry-config.js';

export interface OtlpExporters {
  traces: SpanExporter;
  metrics: PushMetricExporter;
}

export async function createExporters(
  { endpoint, headers, protocol, timeoutMs }: TelemetryConfig,
  { proxyUrl, noProxy }: Pick<OutboundConfig, 'proxyUrl' | 'noProxy'>,
): Promise<OtlpExporters> {
  const [{ OTLPTraceExporter }, { OTLPMetricExporter }] =
    protocol === 'http/json'
      ? await Promise.all([
          import('@opentelemetry/exporter-trace-otlp-http'),
          import('@opentelemetry/exporter-metrics-otlp-http'),
        ])
      : await Promise.all([
          import('@opentelemetry/exporter-trace-otlp-proto'),
          import('@opentelemetry/exporter-metrics-otlp-proto'),
        ]);
  const options = {
    headers,
    timeoutMillis: timeoutMs,
    userAgent: 'slipway',
    httpAgentOptions: {
      keepAlive: true,
      ...(proxyUrl !== null &&
        !bypassesProxy(new URL(endpoint), noProxy ?? '') && { proxyEnv: { HTTPS_PROXY: proxyUrl } }),
    },
  };
  return {
    traces: new OTLPTraceExporter({ ...options, url: `${endpoint}/v1/traces` }),
    metrics: new OTLPMetricExporter({ ...options, url: `${endpoint}/v1/metrics` }),
  };
}
