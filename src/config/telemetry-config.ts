import { ConfigError } from '@slipway/common/errors/config.error.js';
import {
  ChoiceVariable,
  commaList,
  FromVariable,
  IntegerVariable,
  MatchingVariable,
  readGroup,
  Satisfies,
  SwitchVariable,
  UrlVariable,
} from '@slipway/configuration/variables.js';

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
const PROTOCOLS = ['http/protobuf', 'http/json'] as const;
/** These headers frame the request. */
const FRAMING = /^(host|content-length|content-type|transfer-encoding|connection|upgrade|expect)$/i;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_VALUE = /^[\x20-\x7e]{1,4096}$/;
const RATIO = 'must be a number from 0 to 1';

/** https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/; absent without an endpoint. */
export class TelemetryConfig {
  @UrlVariable(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'Base address of the collector, such as `http://collector:4318`; `/v1/traces` and `/v1/metrics` are below it. Nothing is exported without it.',
    {},
    Satisfies(
      (address) => /^https?:\/\/[^?#@]+$/.test(String(address)),
      'must be an http(s) address without user, password and query; keys go into OTEL_EXPORTER_OTLP_HEADERS',
    ),
  )
  endpoint: string;

  @FromVariable(
    'OTEL_EXPORTER_OTLP_HEADERS',
    'Sent to the collector, with percent-encoded values (`Authorization=Basic%20…`).',
    { isSecret: true, form: 'a comma list of name=value', absent: {}, convert: parseHeaders },
  )
  headers: Readonly<Record<string, string>>;

  @ChoiceVariable('OTEL_EXPORTER_OTLP_PROTOCOL', 'There is no gRPC.', PROTOCOLS, { default: 'http/protobuf' })
  protocol: (typeof PROTOCOLS)[number];

  @IntegerVariable(
    'OTEL_EXPORTER_OTLP_TIMEOUT',
    "What a batch may take, with the exporter's own few attempts.",
    { default: '10000', minimum: 100, maximum: 60_000, unit: 'milliseconds' },
  )
  timeoutMs: number;

  @MatchingVariable(
    'OTEL_SERVICE_NAME',
    '`service.name`; spans of agent servers have it with `-agent-server` added.',
    /^[^\p{C}]{1,255}$/u,
    'must be a name of at most 255 characters',
    { default: 'slipway' },
  )
  serviceName: string;

  @FromVariable(
    'OTEL_RESOURCE_ATTRIBUTES',
    'Such as `deployment.environment.name=production`. `service.instance.id` is random unless given.',
    { form: 'a comma list of key=value', absent: {}, convert: parseAttributes },
  )
  resourceAttributes: Readonly<Record<string, string>>;

  @ChoiceVariable('OTEL_TRACES_EXPORTER', 'Whether traces are exported.', ['otlp', 'none'], {
    default: 'otlp',
  })
  traces: 'otlp' | 'none';

  @ChoiceVariable(
    'OTEL_METRICS_EXPORTER',
    'Whether metrics are exported; `METRICS_PORT` is independent of it.',
    ['otlp', 'none'],
    { default: 'otlp' },
  )
  metrics: 'otlp' | 'none';

  @ChoiceVariable('OTEL_TRACES_SAMPLER', 'Which traces are kept.', SAMPLERS, {
    default: 'parentbased_always_on',
  })
  sampler: (typeof SAMPLERS)[number];

  @FromVariable(
    'OTEL_TRACES_SAMPLER_ARG',
    'The share of traces that the `traceidratio` samplers keep.',
    { default: '1', convert: (text) => (/^\d*\.?\d+$/.test(text) ? Number(text) : text) },
    Satisfies((ratio) => typeof ratio === 'number' && ratio <= 1, RATIO),
  )
  samplerRatio: number;

  @IntegerVariable('OTEL_BSP_SCHEDULE_DELAY', 'How long a finished span waits for others.', {
    default: '5000',
    minimum: 10,
    maximum: 60_000,
    unit: 'milliseconds',
  })
  spanDelayMs: number;

  @IntegerVariable('OTEL_METRIC_EXPORT_INTERVAL', 'From one export of the metrics to the next.', {
    default: '60000',
    minimum: 100,
    maximum: 3_600_000,
    unit: 'milliseconds',
  })
  metricIntervalMs: number;

  @SwitchVariable('OTEL_SDK_DISABLED', 'Switches all of it off.', false)
  disabled: boolean;
}

/** Judges the variables even if nothing is exported, so that a mistake shows at once. @throws ConfigError */
export function readTelemetry(variables: Readonly<Record<string, string>>): TelemetryConfig | null {
  const telemetry = readGroup(TelemetryConfig, variables);
  // The endpoint is null when absent, though its type does not say so.
  const endpoint = telemetry.endpoint as string | null;
  const exportsNothing = telemetry.traces === 'none' && telemetry.metrics === 'none';
  return endpoint === null || telemetry.disabled || exportsNothing ? null : telemetry;
}

/** @throws ConfigError that repeats nothing of the text, which holds keys */
function parseHeaders(text: string): Record<string, string> {
  const form = 'must be a comma list of name=value, with % and comma in values percent-encoded';
  const headers = parsePairs('OTEL_EXPORTER_OTLP_HEADERS', text, form);
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name) || !HEADER_VALUE.test(value) || FRAMING.test(name)) {
      throw new ConfigError(
        'OTEL_EXPORTER_OTLP_HEADERS: has a name or a value that no header can have, or a header that the service sets',
      );
    }
  }
  return headers;
}

function parseAttributes(text: string): Record<string, string> {
  return parsePairs(
    'OTEL_RESOURCE_ATTRIBUTES',
    text,
    'must be a comma list of key=value, such as deployment.environment.name=production',
  );
}

function parsePairs(variable: string, text: string, form: string): Record<string, string> {
  return Object.fromEntries(
    commaList(text).map((entry) => {
      const [, name, value] = /^([^=]+?)\s*=\s*(.*)$/.exec(entry) ?? [];
      if (name === undefined || value === undefined) {
        throw new ConfigError(`${variable}: ${form}`);
      }
      try {
        return [name, decodeURIComponent(value)];
      } catch (error) {
        // The cause repeats nothing of the text: it can only be a stray %.
        throw new ConfigError(`${variable}: ${form}`, { cause: error });
      }
    }),
  );
}
