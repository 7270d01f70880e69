import pLimit from 'p-limit';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { inTime } from '@slipway/common/async.js';
import type { Log } from '@slipway/common/log.js';

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Added to the help of our metrics: queries over several replicas go wrong otherwise. */
const SCOPES = {
  counted: 'Each replica counts for itself: sum over replicas.',
  database: 'Read from the database, the same by every replica: take the maximum over replicas.',
  replica: 'Of this replica.',
};

/** A scrape must not take all connections of the pool. */
const MAX_READS = 3;
/** Prometheus waits for ten seconds; the other metrics are needed most while the database is down. */
const READ_TIMEOUT_MS = 3_000;

/**
 * Each combination is a series that lives for ever and begins at 0. Ids, addresses and texts of users are no labels.
 */
export type LabelValues = Readonly<Record<string, readonly string[]>>;

export type NoLabels = Readonly<Record<string, never>>;

type Labels<V extends LabelValues> = Readonly<{ [Label in keyof V]: V[Label][number] }>;

interface InstrumentDefinition {
  name: string;
  help: string;
  labels: LabelValues;
}

interface HistogramDefinition extends InstrumentDefinition {
  /** Ascending upper bounds. */
  buckets: readonly number[];
}

export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface SampleSource {
  name: string;
  help: string;
  /** `database`: the same figure on every replica; `replica` (the default): one for each. */
  scope?: 'database' | 'replica';
  labels: readonly string[];
  read: () => Promise<readonly Sample[]>;
}

export interface GaugeSource extends Omit<SampleSource, 'labels' | 'read'> {
  label: string;
  /** The keys are values of the label, from a small set. */
  read: () => Promise<ReadonlyMap<string, number>>;
}

export interface Instrument<V extends LabelValues> {
  /** Counts one, or measures `value`. */
  record(labels: Labels<V>, value?: number): void;
}

/** Metrics of one process, in the format of Prometheus; each is defined where it is measured. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly requests: Histogram;
  private readonly limit = pLimit(MAX_READS);
  private hasProcessMetrics = false;
  /** No gauge is read from the database for a while after one has failed. */
  private databaseAwayUntil = -Infinity;

  /** @param prefix of the name that the metric of requests has */
  constructor(
    prefix: string,
    private readonly logger: Log,
  ) {
    this.requests = new Histogram({
      name: `${prefix}_http_request_duration_seconds`,
      help: `Time from a request to the end of its answer; streams last as long as they are read. ${SCOPES.counted}`,
      labelNames: ['method', 'route', 'status'],
      buckets: SECONDS,
      registers: [this.registry],
    });
  }

  /** The text format of https://prometheus.io/docs/instrumenting/exposition_formats/. */
  get contentType(): string {
    return this.registry.contentType;
  }

  async text(): Promise<string> {
    return await this.registry.metrics();
  }

  async values(): ReturnType<Registry['getMetricsAsJSON']> {
    return await this.registry.getMetricsAsJSON();
  }

  /** What a gauge has now, by one of its labels; empty while it cannot be read. */
  async sums(name: string, label: string): Promise<Record<string, number>> {
    const found = await this.registry.getSingleMetric(name)?.get();
    const sums: Record<string, number> = {};
    for (const { labels, value } of found?.values ?? []) {
      const key = String(labels[label]);
      sums[key] = (sums[key] ?? 0) + value;
    }
    return sums;
  }

  /** Adds Node's own metrics, which have a small permanent cost. */
  addProcessMetrics(): void {
    if (!this.hasProcessMetrics) {
      this.hasProcessMetrics = true;
      collectDefaultMetrics({ register: this.registry });
    }
  }

  addGauge({ label, read, ...gauge }: GaugeSource): void {
    this.addSamples({
      ...gauge,
      labels: [label],
      read: async () => [...(await read())].map(([key, value]) => ({ labels: { [label]: key }, value })),
    });
  }

  addSamples({ name, help, labels, scope = 'replica', read }: SampleSource): void {
    const readSafely = (): Promise<readonly Sample[] | null> =>
      this.limit(() => this.read(name, scope === 'database', read));
    // The constructor registers the gauge.
    void new Gauge({
      name,
      help: `${help}. ${SCOPES[scope]}`,
      labelNames: [...labels],
      registers: [this.registry],
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

  addCounter<const V extends LabelValues>({
    name,
    help,
    labels,
  }: InstrumentDefinition & { labels: V }): Instrument<V> {
    const counter = new Counter({
      name,
      help: `${help}. ${SCOPES.counted}`,
      labelNames: Object.keys(labels),
      registers: [this.registry],
    });
    combinations(labels).forEach((each) => counter.inc(each, 0));
    return { record: (each, value = 1) => counter.inc(each, value) };
  }

  addHistogram<const V extends LabelValues>({
    name,
    help,
    labels,
    buckets,
  }: HistogramDefinition & { labels: V }): Instrument<V> {
    const histogram = new Histogram({
      name,
      help: `${help}. ${SCOPES.counted}`,
      labelNames: Object.keys(labels),
      buckets: [...buckets],
      registers: [this.registry],
    });
    combinations(labels).forEach((each) => histogram.zero(each));
    return { record: (each, value = 1) => histogram.observe(each, value) };
  }

  /** Counts a finished request; `route` is the pattern, never the requested address: each value lives for ever. */
  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.requests.observe({ method, route, status }, seconds);
  }

  private async read(
    metric: string,
    fromDatabase: boolean,
    read: SampleSource['read'],
  ): Promise<readonly Sample[] | null> {
    if (fromDatabase && performance.now() < this.databaseAwayUntil) {
      return null;
    }
    try {
      return await inTime(READ_TIMEOUT_MS, read(), () => new Error('the read timed out'));
    } catch (error) {
      if (fromDatabase) {
        this.databaseAwayUntil = performance.now() + READ_TIMEOUT_MS;
      }
      this.logger.warn('failed to read metric', { metric, error: String(error) });
      return null;
    }
  }
}

/** Adds missing values with 0: alerts need series that do not come and go. */
export function withZeros(
  values: readonly string[],
  counts: ReadonlyMap<string, number>,
): Map<string, number> {
  return new Map([...values.map((value): [string, number] => [value, 0]), ...counts]);
}

function combinations(labels: LabelValues): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (found, [label, values]) => found.flatMap((each) => values.map((value) => ({ ...each, [label]: value }))),
    [{}],
  );
}
