import { Logger } from '@nestjs/common';
import pLimit from 'p-limit';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import {
  combinations,
  type CounterDefinition,
  type HistogramDefinition,
  type Instrument,
  type LabelValues,
  type Sample,
  type SampleSource,
} from './metrics.js';

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Added to the help of every metric of ours: queries over several replicas go wrong otherwise. */
const SCOPES = {
  counted: 'Each replica counts for itself: sum over replicas.',
  database: 'Read from the database, the same by every replica: take the maximum over replicas.',
  replica: 'Of this replica.',
};

/** Gauges that are read concurrently: a scrape must not take all connections of the pool. */
const MAX_READS = 3;
/** Prometheus waits for ten seconds in all, and the other metrics are worth having, above all while the database is down. */
const READ_TIMEOUT_MS = 3_000;

/** The metrics in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/). */
export class MetricsRegistry {
  readonly #logger = new Logger('Metrics');
  readonly #registry = new Registry();
  readonly #requests: Histogram<'method' | 'route' | 'status'>;
  readonly #limit = pLimit(MAX_READS);
  /** Until this time no gauge is read from the database, because one has just failed. */
  #databaseAwayUntil = -Infinity;

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Histogram({
      name: 'slipway_http_request_duration_seconds',
      help: `Time from a request to the end of its answer; streams last as long as they are read. ${SCOPES.counted}`,
      labelNames: ['method', 'route', 'status'],
      buckets: SECONDS,
      registers: [this.#registry],
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return await this.#registry.metrics();
  }

  /** The same metrics for exporters of other formats. */
  async values(): ReturnType<Registry['getMetricsAsJSON']> {
    return await this.#registry.getMetricsAsJSON();
  }

  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.observe({ method, route, status }, seconds);
  }

  addCounter({ name, help, labels }: CounterDefinition): Instrument<LabelValues> {
    const counter = new Counter({
      name,
      help: `${help}. ${SCOPES.counted}`,
      labelNames: Object.keys(labels),
      registers: [this.#registry],
    });
    combinations(labels).forEach((each) => counter.inc(each, 0));
    return { record: (each, value = 1) => counter.inc(each, value) };
  }

  addHistogram({ name, help, labels, buckets }: HistogramDefinition): Instrument<LabelValues> {
    const histogram = new Histogram({
      name,
      help: `${help}. ${SCOPES.counted}`,
      labelNames: Object.keys(labels),
      buckets: [...buckets],
      registers: [this.#registry],
    });
    combinations(labels).forEach((each) => histogram.zero(each));
    return { record: (each, value = 1) => histogram.observe(each, value) };
  }

  addGauge({ name, help, labels, scope = 'replica', read }: SampleSource): void {
    const readSafely = (): Promise<readonly Sample[] | null> =>
      this.#limit(() => this.#read(name, scope === 'database', read));
    // It registers itself.
    void new Gauge({
      name,
      help: `${help}. ${SCOPES[scope]}`,
      labelNames: [...labels],
      registers: [this.#registry],
      async collect() {
        const samples = await readSafely();
        this.reset();
        if (labels.length === 0) {
          // A reset leaves a 0 there.
          this.remove();
        }
        samples?.forEach((sample) => this.set(sample.labels, sample.value));
      },
    });
  }

  /** Null when the values cannot be read. */
  async #read(
    metric: string,
    fromDatabase: boolean,
    read: SampleSource['read'],
  ): Promise<readonly Sample[] | null> {
    if (fromDatabase && performance.now() < this.#databaseAwayUntil) {
      return null;
    }
    try {
      return await withTimeout(read());
    } catch (error) {
      if (fromDatabase) {
        this.#databaseAwayUntil = performance.now() + READ_TIMEOUT_MS;
      }
      this.#logger.warn('failed to read metric', { metric, error: String(error) });
      return null;
    }
  }
}

async function withTimeout<T>(reading: Promise<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(new Error('the read timed out')), READ_TIMEOUT_MS);
  try {
    return await Promise.race([reading, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
