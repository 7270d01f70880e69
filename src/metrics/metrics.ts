import { Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { GaugeSource, MetricsRegistry } from './metrics-registry.js';

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
