import { describe, expect, it } from '@jest/globals';
import { DataPointType } from '@opentelemetry/sdk-metrics';
import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
import { toOtelMetrics } from './prometheus.producer.js';

const PERIOD = { start: [100, 0], end: [200, 0] } satisfies Parameters<typeof toOtelMetrics>[1];

describe('metrics of Prometheus for OpenTelemetry', () => {
  const registers = [new Registry()];
  const [registry] = registers;
  const counter = new Counter({ name: 'jobs_total', help: 'Jobs', labelNames: ['queue'], registers });
  const gauge = new Gauge({ name: 'sandboxes', help: 'Sandboxes', registers });
  const histogram = new Histogram({
    name: 'duration_seconds',
    help: 'Durations',
    labelNames: ['route', 'status'],
    buckets: [0.1, 1],
    registers,
  });
  const summary = new Summary({ name: 'sizes', help: 'Sizes', registers });
  const metrics = async () => toOtelMetrics((await registry?.getMetricsAsJSON()) ?? [], PERIOD);
  const named = async (name: string) => (await metrics()).find(({ descriptor }) => descriptor.name === name);

  it('has counters as sums that only grow', async () => {
    counter.inc({ queue: 'starts' }, 3);

    expect(await named('jobs_total')).toMatchObject({
      descriptor: { description: 'Jobs' },
      dataPointType: DataPointType.SUM,
      isMonotonic: true,
      dataPoints: [{ startTime: [100, 0], endTime: [200, 0], attributes: { queue: 'starts' }, value: 3 }],
    });
  });

  it('has gauges', async () => {
    gauge.set(-2);

    expect(await named('sandboxes')).toMatchObject({
      dataPointType: DataPointType.GAUGE,
      dataPoints: [{ attributes: {}, value: -2 }],
    });
  });

  it('has histograms, whose buckets do not include each other, one for each set of labels', async () => {
    for (const seconds of [0.05, 0.05, 0.5, 5]) {
      histogram.observe({ route: '/a', status: '200' }, seconds);
    }
    histogram.observe({ route: '/b', status: '404' }, 0.5);

    expect(await named('duration_seconds')).toMatchObject({
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: [
        {
          attributes: { route: '/a', status: '200' },
          value: { buckets: { boundaries: [0.1, 1], counts: [2, 1, 1] }, sum: 5.6, count: 4 },
        },
        {
          attributes: { route: '/b', status: '404' },
          value: { buckets: { boundaries: [0.1, 1], counts: [0, 1, 0] }, sum: 0.5, count: 1 },
        },
      ],
    });
  });

  it('leaves summaries out', async () => {
    summary.observe(1);

    expect((await metrics()).map(({ descriptor }) => descriptor.name)).toEqual([
      'jobs_total',
      'sandboxes',
      'duration_seconds',
    ]);
  });
});
