import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { jsonNumber, jsonList } from '@slipway/common/json-access.js';
import { tracer } from '@slipway/common/spans.js';
import { parseConfig } from '../../src/config/load-config.js';
import { SILENT_LOG } from '@slipway/common/log.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { OtlpExport } from '@slipway/telemetry/otlp-export.js';
import { FakeOtlpCollector } from '../fakes/fake-otlp-collector.js';
import { createTestApp } from '../support/create-test-app.js';
import { until } from '../support/until.js';

const isMeasuring = () => tracer().startSpan('work').isRecording();
const SEARCH = '/api/v1/sandboxes/search';

it.each(['http/protobuf', 'http/json'])(
  'exports spans, the metrics that Prometheus has, and what is left at the stop, by %s',
  async (protocol) => {
    const collector = await FakeOtlpCollector.start();
    const app = await createTestApp({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.origin}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'X-Collector-Key=key%2C4217',
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_SERVICE_NAME: 'slipway-test',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    });
    const counted = () =>
      collector.metrics
        .get('slipway_http_request_duration_seconds')
        ?.points.find(({ attributes }) => attributes['route'] === SEARCH)?.point;
    await app.as(app.user).get(SEARCH).expect(200);
    await until(() => counted() !== undefined);
    await app.close();
    await collector.close();

    expect(collector.named(`GET ${SEARCH}`)).toMatchObject([
      {
        service: 'slipway-test',
        kind: 2,
        attributes: { 'http.request.method': 'GET', 'http.route': SEARCH },
      },
    ]);
    const sent = collector.server.requests.find(({ path }) => path === '/v1/traces');
    expect(sent?.headers).toMatchObject({
      'x-collector-key': 'key,4217',
      'content-type': protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
    });
    const counts = jsonList(counted(), 'bucketCounts').map(Number);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(1);
    expect(counts).toHaveLength(jsonList(counted(), 'explicitBounds').length + 1);
    expect(jsonNumber(counted(), 'sum')).toBeGreaterThan(0);
    expect(collector.metrics.get('process_cpu_seconds_total')?.kind).toBe('sum');
    expect(collector.metrics.get('slipway_sandboxes')?.kind).toBe('gauge');
    expect(collector.metrics.get('slipway_telemetry_dropped_spans')?.points).toHaveLength(3);
  },
);

describe('a collector with a fault', () => {
  let collector: FakeOtlpCollector;
  let exporting: OtlpExport;
  let written: string[];

  beforeEach(async () => {
    collector = await FakeOtlpCollector.start();
    written = [];
  });

  afterEach(async () => {
    await exporting.stop();
    await collector.close();
  });

  /** @param timeoutMs short where nothing is to arrive; a collector that answers may take its time, as on a busy machine */
  const start = async (timeoutMs = 10_000): Promise<void> => {
    const { telemetry: config, outbound: proxy } = parseConfig(
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
        OTEL_EXPORTER_OTLP_HEADERS: 'X-Collector-Key=key%2C4217',
        OTEL_EXPORTER_OTLP_TIMEOUT: String(timeoutMs),
        OTEL_BSP_SCHEDULE_DELAY: '20',
        OTEL_METRICS_EXPORTER: 'none',
      },
      true,
    );
    if (config === null) {
      throw new Error('nothing is exported');
    }
    const logger = new Logger();
    for (const level of ['log', 'warn', 'error'] as const) {
      logger[level] = (...line: unknown[]) => void written.push(JSON.stringify([level, ...line]));
    }
    exporting = await OtlpExport.start({
      config,
      proxy,
      metrics: new Metrics('slipway', SILENT_LOG),
      logger,
    });
  };
  const work = () => tracer().startSpan('work', {}, ROOT_CONTEXT).end();
  const lines = (message: string) => written.filter((line) => line.includes(message));

  it.each([
    ['resets connections', { kind: 'reset' } as const],
    ['never answers', { kind: 'hang' } as const],
    ['is overloaded', { kind: 'status', status: 503 } as const],
  ])('where it %s, loses nothing that the queue holds, and is one warning', async (_what, fault) => {
    await start(200);
    collector.server.injectFault(fault);
    work();
    await until(() => collector.server.requests.length >= 2 && lines('failed to export').length > 0);

    collector.server.clearFaults();
    await until(() => collector.named('work').length > 0);
    await until(() => lines('export of traces resumed').length > 0);
    expect(lines('["warn","failed to export traces"')).toHaveLength(1);
    expect(written).toHaveLength(2);
  });

  it.each([
    ['redirects', { kind: 'redirect', location: 'http://127.0.0.1:1/' } as const],
    ['refuses', { kind: 'status', status: 401 } as const],
  ])('where it %s, is one warning, and its spans are dropped', async (_what, fault) => {
    await start();
    collector.server.injectFault(fault);
    work();
    await until(() => exporting.dropped.get('refused') === 1);
    work();
    await until(() => exporting.dropped.get('refused') === 2);

    expect(lines('["warn","failed to export traces"')).toHaveLength(1);
    expect(written.join()).not.toContain('4217');
  });

  it.each([
    ['a page of HTML', '<html>hello</html>'],
    ['a number of rejected spans', { partialSuccess: { rejectedSpans: '-5' } }],
    ['more than any collector says', 'x'.repeat(1_000_000)],
  ])('where it answers %s, harms nothing', async (_what, body) => {
    await start();
    collector.server.injectFault({ kind: 'status', status: 200, body });
    work();
    await until(() => collector.server.requests.length > 0);
    collector.server.clearFaults();
    work();
    await until(() => collector.named('work').length > 0);

    expect(written).toEqual([]);
  });

  it('holds up no stop', async () => {
    await start(200);
    collector.server.injectFault({ kind: 'hang' });
    work();
    await exporting.stop();

    expect(lines('spans dropped at the stop')).toHaveLength(1);
    expect(isMeasuring()).toBe(false);
  });
});
