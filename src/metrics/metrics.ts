import { Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { MetricsRegistry } from './metrics-registry.js';

/** Numbers that are read whenever somebody asks for the metrics. */
export interface GaugeSource {
  /** As Prometheus wants it: `slipway_sandboxes`. */
  name: string;
  help: string;
  /** Name of the one label; each key of what is read is a value of it, from a small set. */
  label: string;
  read: () => Promise<Map<string, number>>;
}

/** What the service tells of itself in numbers. Nothing is counted, and no library loaded, until `open`. */
@Injectable()
export class Metrics {
  private readonly gauges: GaugeSource[] = [];
  private registry: MetricsRegistry | null = null;

  /** Adds numbers to what can be asked for. To be called before the application has started. */
  offer(gauge: GaugeSource): void {
    this.gauges.push(gauge);
  }

  /** Begins to count. */
  async open(): Promise<MetricsRegistry> {
    const { MetricsRegistry: Registry } = await import('./metrics-registry.js');
    this.registry ??= new Registry(this.gauges);
    return this.registry;
  }

  /**
   * Counts an answered request.
   *
   * @param route the route's pattern, never the address that was asked for: each one is kept for ever
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
