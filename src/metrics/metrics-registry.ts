import { Logger } from '@nestjs/common';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** A gauge whose values are read for each scrape. */
export interface GaugeSource {
  /** In Prometheus' form: `slipway_sandboxes`. */
  name: string;
  help: string;
  /** Name of its one label. The keys of what `read` returns are its values, from a small set. */
  label: string;
  read: () => Promise<Map<string, number>>;
}

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The metrics in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/). */
export class MetricsRegistry {
  readonly #logger = new Logger('Metrics');
  readonly #registry = new Registry();
  readonly #requests: Histogram<'method' | 'route' | 'status'>;

  constructor(gauges: readonly GaugeSource[]) {
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Histogram({
      name: 'slipway_http_request_duration_seconds',
      help: 'Time from a request to the end of its answer; streams last as long as they are read',
      labelNames: ['method', 'route', 'status'],
      buckets: SECONDS,
      registers: [this.#registry],
    });
    gauges.forEach((gauge) => this.#add(gauge));
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

  #add({ name, help, label, read }: GaugeSource): void {
    const logger = this.#logger;
    // It registers itself.
    void new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.#registry],
      async collect() {
        this.reset();
        try {
          for (const [value, count] of await read()) {
            this.set({ [label]: value }, count);
          }
        } catch (error) {
          // The other metrics are worth having, above all while the database is down.
          logger.warn('failed to read metric', { metric: name, error: String(error) });
        }
      },
    });
  }
}
