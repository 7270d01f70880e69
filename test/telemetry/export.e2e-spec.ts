import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import request from 'supertest';
import { jsonNumber, jsonList } from '@slipway/common/json-access.js';
import { AppLogger } from '../../src/common/logging/app-logger.js';
import { tracer } from '../../src/common/spans.js';
import { FakeOtlpCollector } from '../fakes/fake-otlp-collector.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { until } from '../support/until.js';

const isMeasuring = () => tracer().startSpan('work').isRecording();
const SEARCH = '/api/v1/sandboxes/search';

describe.each(['http/protobuf', 'http/json'])('export by %s', (protocol) => {
  let collector: FakeOtlpCollector;
  let app: TestApp;

  beforeAll(async () => {
    collector = await FakeOtlpCollector.start();
    app = await createTestApp({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.origin}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'X-Collector-Key=key%2C4217',
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_SERVICE_NAME: 'slipway-test',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    });
  });

  afterAll(async () => {
    await app.close();
    await collector.close();
  });

  it('sends spans with the headers of the operator', async () => {
    await request(app.url).get(SEARCH).set(app.user.headers).expect(200);
    await until(() => collector.named(`GET ${SEARCH}`).length > 0);

    expect(collector.named(`GET ${SEARCH}`)[0]).toMatchObject({
      service: 'slipway-test',
      kind: 2,
      attributes: { 'http.request.method': 'GET', 'http.route': SEARCH },
    });
    const sent = collector.server.requests.find(({ path }) => path === '/v1/traces');
    expect(sent?.headers).toMatchObject({
      'x-collector-key': 'key,4217',
      'content-type': protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
    });
  });

  it('sends the metrics that Prometheus has', async () => {
    const counted = () =>
      collector.metrics
        .get('slipway_http_request_duration_seconds')
        ?.points.find(({ attributes }) => attributes['route'] === SEARCH)?.point;
    await request(app.url).get(SEARCH).set(app.user.headers).expect(200);
    await until(() => counted() !== undefined);

    const counts = jsonList(counted(), 'bucketCounts').map(Number);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(1);
    expect(counts).toHaveLength(jsonList(counted(), 'explicitBounds').length + 1);
    expect(jsonNumber(counted(), 'sum')).toBeGreaterThan(0);
    expect(collector.metrics.get('process_cpu_seconds_total')?.kind).toBe('sum');
    expect(collector.metrics.get('slipway_sandboxes')?.kind).toBe('gauge');
    expect(collector.metrics.get('slipway_telemetry_dropped_spans')?.points).toHaveLength(3);
  });

  it('sends what is left at the stop', async () => {
    const late = await createTestApp(
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
      app.databaseUrl,
    );
    await request(late.url).get('/api/v1/sandbox-specs/search').set(app.user.headers).expect(200);
    await late.close();

    expect(collector.named('GET /api/v1/sandbox-specs/search')).toHaveLength(1);
  });
});

describe('a collector that is away', () => {
  let collector: FakeOtlpCollector;
  let written: { level: string; message: string; trace_id?: string; span_id?: string }[];

  beforeEach(async () => {
    collector = await FakeOtlpCollector.start();
    written = [];
    const capture = (chunk: unknown): boolean => {
      written.push(JSON.parse(String(chunk)));
      return true;
    };
    jest.spyOn(process.stdout, 'write').mockImplementation(capture);
    jest.spyOn(process.stderr, 'write').mockImplementation(capture);
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    await collector.close();
  });

  /** For a collector that never answers; one that answers may take its time, as on a busy machine. */
  const IMPATIENT = { OTEL_EXPORTER_OTLP_TIMEOUT: '200' };
  /** The exporter tries again within this time before it reports a failure. */
  const BRIEF = { OTEL_EXPORTER_OTLP_TIMEOUT: '2000' };
  const start = async (environment: Record<string, string> = {}): Promise<TestApp> => {
    const app = await createTestApp({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
      OTEL_BSP_SCHEDULE_DELAY: '20',
      OTEL_METRICS_EXPORTER: 'none',
      ...environment,
    });
    Logger.overrideLogger(new AppLogger({ level: 'info', format: 'json' }));
    return app;
  };
  const warnings = () =>
    written.filter(({ message }) => message === 'failed to export traces').map(({ level }) => level);
  const search = (app: TestApp) => request(app.url).get(SEARCH).set(app.user.headers).expect(200);

  it.each([
    ['resets connections', { kind: 'reset' } as const, BRIEF],
    ['never answers', { kind: 'hang' } as const, IMPATIENT],
    ['is overloaded', { kind: 'status', status: 503 } as const, BRIEF],
  ])(
    'where it %s, loses nothing that the queue holds, and is one warning',
    async (_what, fault, environment) => {
      const app = await start(environment);
      try {
        collector.server.injectFault(fault);
        await search(app);
        await until(() => collector.server.requests.length >= 2 && warnings().length > 0);
        expect(warnings()).toEqual(['warn']);

        collector.server.clearFaults();
        await until(() => collector.named(`GET ${SEARCH}`).length > 0);
        await until(() => written.some(({ message }) => message === 'export of traces resumed'));
        expect(warnings()).toEqual(['warn']);
      } finally {
        Logger.overrideLogger(false);
        await app.close();
      }
    },
  );

  it.each([
    ['redirects', { kind: 'redirect', location: 'http://127.0.0.1:1/' } as const],
    ['refuses', { kind: 'status', status: 401 } as const],
  ])('where it %s, is one warning, and its spans are dropped', async (_what, fault) => {
    const app = await start();
    try {
      collector.server.injectFault(fault);
      await search(app);
      await until(() => warnings().length > 0);
      const before = collector.server.requests.length;
      await search(app);
      await until(() => collector.server.requests.length > before);
      await search(app);

      expect(warnings()).toEqual(['warn']);
      expect(JSON.stringify(written)).not.toContain(app.user.key);
    } finally {
      Logger.overrideLogger(false);
      await app.close();
    }
  });

  it.each([
    ['a page of HTML', '<html>hello</html>'],
    ['a number of rejected spans', { partialSuccess: { rejectedSpans: '-5' } }],
    ['more than any collector says', 'x'.repeat(1_000_000)],
  ])('where it answers %s, harms nothing', async (_what, body) => {
    const app = await start();
    try {
      collector.server.injectFault({ kind: 'status', status: 200, body });
      await search(app);
      await until(() => collector.server.requests.length > 0);
      collector.server.clearFaults();
      await search(app);
      await until(() => collector.named(`GET ${SEARCH}`).length > 0);

      expect(warnings()).toEqual([]);
    } finally {
      Logger.overrideLogger(false);
      await app.close();
    }
  });

  it('holds up no stop', async () => {
    const app = await start(IMPATIENT);
    collector.server.injectFault({ kind: 'hang' });
    await search(app);
    await app.close();
    Logger.overrideLogger(false);

    expect(written.some(({ message }) => message === 'spans dropped at the stop')).toBe(true);
    expect(isMeasuring()).toBe(false);
  });
});

describe('without an endpoint', () => {
  it('nothing is measured', async () => {
    const app = await createTestApp();
    try {
      expect(isMeasuring()).toBe(false);
    } finally {
      await app.close();
    }
  });
});
