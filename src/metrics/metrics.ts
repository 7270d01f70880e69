import { Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { MetricsRegistry } from './metrics-registry.js';

/** A gauge whose values are read for each scrape. */
export interface GaugeSource {
  /** In Prometheus' form: `slipway_sandboxes`. */
  name: string;
  help: string;
  /** Name of its one label. The keys of what `read` returns are its values, from a small set. */
  label: string;
  read: () => Promise<Map<string, number>>;
}

/** The service's metrics. Nothing is counted, and no library loaded, until `open`. */
@Injectable()
export class Metrics {
  private readonly gauges: GaugeSource[] = [];
  private registry: MetricsRegistry | null = null;

  /** Adds a gauge. Called before the application has started. */
  addGauge(gauge: GaugeSource): void {
    this.gauges.push(gauge);
  }

  /** Begins to count. */
  async open(): Promise<MetricsRegistry> {
    const { MetricsRegistry: Registry } = await import('./metrics-registry.js');
    this.registry ??= new Registry(this.gauges);
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
}

/** @param statement selects `value` (text) and `count` (int), one row for each value */
export async function countRows(dataSource: DataSource, statement: string): Promise<Map<string, number>> {
  const rows = await dataSource.query<{ value: string; count: number }[]>(statement);
  return new Map(rows.map(({ value, count }) => [value, count]));
}
