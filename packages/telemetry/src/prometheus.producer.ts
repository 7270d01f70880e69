import { type HrTime, ValueType } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  DataPointType,
  type HistogramMetricData,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { Metrics } from './metrics.js';

interface PrometheusMetric {
  name: string;
  help: string;
  /** `counter`, `gauge`, `histogram` or `summary`, though prom-client's types say otherwise. */
  type: unknown;
  values: readonly PrometheusValue[];
}

interface PrometheusValue {
  value: number;
  labels: Readonly<Partial<Record<string, string | number>>>;
  metricName?: string;
}

type Labels = Record<string, string | number>;

interface Period {
  start: HrTime;
  end: HrTime;
}

/** Hands Prometheus' metrics to OpenTelemetry under the same names, so that they are defined once. */
export class PrometheusProducer implements MetricProducer {
  private readonly start = millisToHrTime(performance.timeOrigin);

  constructor(private readonly metrics: Metrics) {}

  async collect(): Promise<CollectionResult> {
    const values = await this.metrics.values();
    const metrics = toOtelMetrics(values, { start: this.start, end: millisToHrTime(Date.now()) });
    return {
      resourceMetrics: {
        resource: emptyResource(),
        scopeMetrics: [{ scope: { name: 'slipway' }, metrics }],
      },
      errors: [],
    };
  }
}

/** Converts metrics without summaries, for which OpenTelemetry has no instrument. */
export function toOtelMetrics(metrics: readonly PrometheusMetric[], period: Period): MetricData[] {
  return metrics.flatMap((metric) => toOtelMetric(metric, period) ?? []);
}

function toOtelMetric({ name, help, type, values }: PrometheusMetric, period: Period): MetricData | null {
  const common = {
    descriptor: { name, description: help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const times = { startTime: period.start, endTime: period.end };
  switch (type) {
    case 'counter':
    case 'gauge': {
      const dataPoints = values.map(({ value, labels }) => ({
        ...times,
        attributes: defined(labels),
        value,
      }));
      return type === 'gauge'
        ? { ...common, dataPointType: DataPointType.GAUGE, dataPoints }
        : { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
    }
    case 'histogram': {
      const dataPoints: HistogramMetricData['dataPoints'] = histogramsOf(name, values).map(
        ({ attributes, ...value }) => ({ ...times, attributes, value }),
      );
      return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
    }
    default:
      return null;
  }
}

interface HistogramParts {
  attributes: Labels;
  /** Ascending upper bounds with counts; the last bound is infinity. */
  cumulative: [number, number][];
  sum: number;
  count: number;
}

/** Prometheus' buckets are cumulative, OpenTelemetry's are not. */
function histogramsOf(
  name: string,
  values: readonly PrometheusValue[],
): { attributes: Labels; buckets: { boundaries: number[]; counts: number[] }; sum: number; count: number }[] {
  const byLabels = new Map<string, HistogramParts>();
  for (const { value, labels, metricName } of values) {
    const { le, ...own } = defined(labels);
    const key = JSON.stringify(Object.entries(own).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    const parts = byLabels.get(key) ?? { attributes: own, cumulative: [], sum: 0, count: 0 };
    byLabels.set(key, parts);
    if (metricName === `${name}_sum`) {
      parts.sum = value;
    } else if (metricName === `${name}_count`) {
      parts.count = value;
    } else if (le !== undefined) {
      parts.cumulative.push([le === '+Inf' ? Infinity : Number(le), value]);
    }
  }
  return [...byLabels.values()].map(({ attributes, cumulative, sum, count }) => {
    const sorted = cumulative.toSorted(([a], [b]) => a - b);
    return {
      attributes,
      sum,
      count,
      buckets: {
        boundaries: sorted.map(([bound]) => bound).filter(Number.isFinite),
        counts: sorted.map(([, below], index) => below - (sorted[index - 1]?.[1] ?? 0)),
      },
    };
  });
}

function defined(labels: PrometheusValue['labels']): Labels {
  return Object.fromEntries(
    Object.entries(labels).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}
