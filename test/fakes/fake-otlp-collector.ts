import { jsonAt, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { type FakeRequest, FakeServer } from './fake-server.js';
import { decodeOtlp } from './otlp-messages.js';

/** A span as it arrived. */
export interface CollectedSpan {
  /** `service.name` of its resource. */
  service: string;
  /** `service.instance.id`: which replica sent it. */
  instance: string;
  traceId: string;
  spanId: string;
  /** Empty: none. */
  parentId: string;
  name: string;
  kind: number;
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  failed: boolean;
}

/** A metric as it arrived, with its points. */
export interface CollectedMetric {
  name: string;
  kind: 'gauge' | 'sum' | 'histogram';
  points: { attributes: Record<string, unknown>; point: unknown }[];
}

const KINDS = ['gauge', 'sum', 'histogram'] as const;
const ERROR_STATUS = 2;

/** A collector that takes OTLP over HTTP in both of its forms, and keeps what it gets. */
export class FakeOtlpCollector {
  readonly spans: CollectedSpan[] = [];
  /** The latest metrics by name. */
  readonly metrics = new Map<string, CollectedMetric>();

  private constructor(readonly server: FakeServer) {}

  static async start(port = 0): Promise<FakeOtlpCollector> {
    let self: FakeOtlpCollector;
    const server = await FakeServer.start((request) => self.take(request), { port });
    self = new FakeOtlpCollector(server);
    return self;
  }

  get origin(): string {
    return this.server.origin;
  }

  named(name: string): CollectedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  async close(): Promise<void> {
    await this.server.close();
  }

  private take(request: FakeRequest): { status: number; body: unknown } {
    const signal = /^\/v1\/(traces|metrics)$/.exec(request.path)?.[1];
    if (request.method !== 'POST' || (signal !== 'traces' && signal !== 'metrics')) {
      return { status: 404, body: {} };
    }
    const isJson = request.headers['content-type'] === 'application/json';
    const body = isJson ? parseJson(request.body) : decodeOtlp(signal, request.bytes);
    if (signal === 'traces') {
      this.spans.push(...jsonList(body, 'resourceSpans').flatMap(toSpans));
    } else {
      const metrics = jsonList(body, 'resourceMetrics')
        .flatMap((resource) => jsonList(resource, 'scopeMetrics'))
        .flatMap((scope) => jsonList(scope, 'metrics'));
      metrics.flatMap(toMetric).forEach((metric) => this.metrics.set(metric.name, metric));
    }
    // The empty answer of the binary form has no bytes.
    return { status: 200, body: isJson ? {} : '' };
  }
}

function toSpans(resource: unknown): CollectedSpan[] {
  const about = attributesOf(jsonAt(resource, 'resource'));
  return jsonList(resource, 'scopeSpans')
    .flatMap((scope) => jsonList(scope, 'spans'))
    .map((span) => ({
      service: String(about['service.name']),
      instance: String(about['service.instance.id']),
      traceId: jsonText(span, 'traceId') ?? '',
      spanId: jsonText(span, 'spanId') ?? '',
      parentId: jsonText(span, 'parentSpanId') ?? '',
      name: jsonText(span, 'name') ?? '',
      kind: Number(jsonAt(span, 'kind')),
      startNs: BigInt(jsonText(span, 'startTimeUnixNano') ?? 0),
      endNs: BigInt(jsonText(span, 'endTimeUnixNano') ?? 0),
      attributes: attributesOf(span),
      failed: jsonAt(span, 'status', 'code') === ERROR_STATUS,
    }));
}

function toMetric(metric: unknown): CollectedMetric[] {
  const kind = KINDS.find((each) => jsonAt(metric, each) !== undefined);
  const name = jsonText(metric, 'name');
  return kind === undefined || name === null
    ? []
    : [
        {
          name,
          kind,
          points: jsonList(metric, kind, 'dataPoints').map((point) => ({
            attributes: attributesOf(point),
            point,
          })),
        },
      ];
}

function attributesOf(value: unknown): Record<string, unknown> {
  return Object.fromEntries(
    jsonList(value, 'attributes').map((attribute) => {
      const [given] = Object.values(jsonAt(attribute, 'value') ?? {});
      return [jsonText(attribute, 'key') ?? '', given];
    }),
  );
}
