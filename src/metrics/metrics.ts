import { Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { MetricsRegistry } from './metrics-registry.js';

/**
 * The labels of a metric with all values that each may take. Each combination is a series that is kept for ever and
 * begins at 0, so that its first increase is one. No id, no address and no text of users is a label.
 */
export type LabelValues = Readonly<Record<string, readonly string[]>>;

/** Labels of an instrument without labels. */
export type NoLabels = Readonly<Record<string, never>>;

type Labels<V extends LabelValues> = Readonly<{ [Label in keyof V]: V[Label][number] }>;

interface InstrumentDefinition {
  /** In Prometheus' form: `slipway_provider_requests_total`. */
  name: string;
  /** What it counts; that each replica counts for itself is added. */
  help: string;
  labels: LabelValues;
}

export type CounterDefinition = InstrumentDefinition;

export interface HistogramDefinition extends InstrumentDefinition {
  /** Upper bounds in ascending order. */
  buckets: readonly number[];
}

/** One value of a gauge. */
export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** A gauge whose values are read for each scrape. */
export interface SampleSource {
  /** In Prometheus' form: `slipway_sandboxes`. */
  name: string;
  /** What it shows; what to do with the figures of several replicas is added. */
  help: string;
  /** `database`: every replica reads the same figure; `replica` (the default): each one has its own. */
  scope?: 'database' | 'replica';
  labels: readonly string[];
  read: () => Promise<readonly Sample[]>;
}

/** A gauge with one label. */
export interface GaugeSource extends Omit<SampleSource, 'labels' | 'read'> {
  label: string;
  /** The keys of what it returns are values of the label, from a small set. */
  read: () => Promise<ReadonlyMap<string, number>>;
}

/** An instrument with which a feature counts or measures events. */
export interface Instrument<V extends LabelValues> {
  /** Counts one, or measures `value`. Does nothing while metrics are off. */
  record(labels: Labels<V>, value?: number): void;
}

/** The service's metrics. Nothing is counted, and no library loaded, until `open`. */
@Injectable()
export class Metrics {
  /** Defines what has been added, in the registry. */
  private readonly definitions: ((registry: MetricsRegistry) => void)[] = [];
  private registry: MetricsRegistry | null = null;

  addGauge({ label, read, ...gauge }: GaugeSource): void {
    this.addSamples({
      ...gauge,
      labels: [label],
      read: async () => [...(await read())].map(([key, value]) => ({ labels: { [label]: key }, value })),
    });
  }

  addSamples(source: SampleSource): void {
    this.define((registry) => registry.addGauge(source));
  }

  /** Adds a counter. */
  addCounter<const V extends LabelValues>(definition: CounterDefinition & { labels: V }): Instrument<V> {
    return this.instrument((registry) => registry.addCounter(definition));
  }

  /** Adds a histogram of durations or sizes. */
  addHistogram<const V extends LabelValues>(definition: HistogramDefinition & { labels: V }): Instrument<V> {
    return this.instrument((registry) => registry.addHistogram(definition));
  }

  /** Begins to count. */
  async open(): Promise<MetricsRegistry> {
    const { MetricsRegistry: Registry } = await import('./metrics-registry.js');
    if (this.registry === null) {
      const registry = new Registry();
      this.registry = registry;
      this.definitions.forEach((define) => define(registry));
    }
    return this.registry;
  }

  /**
   * Counts a finished request.
   *
   * @param route pattern of the route, never the requested address: each value is kept for ever
   */
  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.registry?.countRequest(method, route, status, seconds);
  }

  private define(definition: (registry: MetricsRegistry) => void): void {
    this.definitions.push(definition);
    if (this.registry !== null) {
      definition(this.registry);
    }
  }

  private instrument<V extends LabelValues>(
    define: (registry: MetricsRegistry) => Instrument<LabelValues>,
  ): Instrument<V> {
    let defined: Instrument<LabelValues> | null = null;
    this.define((registry) => {
      defined = define(registry);
    });
    return { record: (labels, value = 1) => defined?.record(labels, value) };
  }
}

/** @param statement selects `value` (text) and `count` (int), one row for each value */
export async function countRows(dataSource: DataSource, statement: string): Promise<Map<string, number>> {
  const rows = await dataSource.query<{ value: string; count: number }[]>(statement);
  return new Map(rows.map(({ value, count }) => [value, count]));
}

/** The counts with 0 for those of the values that have none: a series that comes and goes is no good for alerts. */
export function withZeros(
  values: readonly string[],
  counts: ReadonlyMap<string, number>,
): Map<string, number> {
  return new Map([...values.map((value): [string, number] => [value, 0]), ...counts]);
}

/** All combinations of the labels' values. */
export function combinations(labels: LabelValues): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (found, [label, values]) => found.flatMap((each) => values.map((value) => ({ ...each, [label]: value }))),
    [{}],
  );
}
