import { describe, expect, it } from '@jest/globals';
import { parseConfig } from './load-config.js';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

describe('the configuration of OpenTelemetry', () => {
  it.each([
    ['nothing is set', {}],
    ['only the name is', { OTEL_SERVICE_NAME: 'slipway' }],
    ['it is disabled', { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }],
    ['nothing is exported', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }],
  ])('is none where %s', (_when, variables) => {
    expect(parseConfig(variables, false).telemetry).toBeNull();
  });

  it('has the defaults of OpenTelemetry', () => {
    expect(parseConfig(ENDPOINT, false).telemetry).toEqual({
      endpoint: 'http://collector:4318',
      headers: {},
      protocol: 'http/protobuf',
      timeoutMs: 10_000,
      serviceName: 'slipway',
      resourceAttributes: {},
      traces: 'otlp',
      metrics: 'otlp',
      sampler: 'parentbased_always_on',
      samplerRatio: 1,
      spanDelayMs: 5_000,
      metricIntervalMs: 60_000,
      disabled: false,
    });
  });

  it('reads lists, whose values are percent-encoded', () => {
    const { telemetry } = parseConfig(
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otlp.example.com/tenant/',
        OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20dTpw, X-Scope=a=b',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test%2C1,host.name=a',
        OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '.25',
      },
      false,
    );

    expect(telemetry).toMatchObject({
      endpoint: 'https://otlp.example.com/tenant',
      headers: { Authorization: 'Basic dTpw', 'X-Scope': 'a=b' },
      resourceAttributes: { 'deployment.environment.name': 'test,1', 'host.name': 'a' },
      samplerRatio: 0.25,
    });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:password@collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector:4318/?key=1'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'Authorization'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'Authorization=%zz'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'two words=x'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'X-Key=a%0d%0ab'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'Content-Type=text/plain'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '0'],
    ['OTEL_SERVICE_NAME', 'a\nb'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'production'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', '-1'],
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_METRICS_EXPORTER', 'prometheus'],
    ['OTEL_BSP_SCHEDULE_DELAY', '0'],
    ['OTEL_METRIC_EXPORT_INTERVAL', 'often'],
    ['OTEL_SDK_DISABLED', '1'],
  ])('refuses %s=%j in one line that names it', (name, value) => {
    expect(() => parseConfig({ [name]: value }, false)).toThrow(new RegExp(`^${name}: [^\\n]+$`));
  });

  it('never repeats a header in its refusal', () => {
    expect(() => parseConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'top secret=topsecret' }, false)).toThrow(
      expect.objectContaining({ message: expect.not.stringMatching(/top ?secret/) }),
    );
  });
});
