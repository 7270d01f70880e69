import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { type Instrument, Metrics } from '../../metrics/metrics.js';
import type { SandboxBackend } from './backends/sandbox-backend.js';

/** The calls of the port that ask the engine for something. */
const OPERATIONS = ['prepare', 'start', 'inspect', 'logTail', 'pause', 'resume', 'remove', 'list'] as const;
type Operation = (typeof OPERATIONS)[number];

type OperationLabels = { backend: readonly string[]; operation: typeof OPERATIONS };

const SECONDS = [0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Measures what the service asks of its sandbox backend, whichever that is. */
@Injectable()
export class BackendMetrics {
  private readonly calls: Instrument<OperationLabels>;
  private readonly errors: Instrument<OperationLabels>;

  constructor(metrics: Metrics, config: AppConfig) {
    const labels = { backend: [config.sandboxes.backend], operation: OPERATIONS };
    this.calls = metrics.addHistogram({
      name: 'slipway_sandbox_backend_call_seconds',
      help: 'How long calls of the sandbox backend took, whether or not they succeeded',
      labels,
      buckets: SECONDS,
    });
    this.errors = metrics.addCounter({
      name: 'slipway_sandbox_backend_errors_total',
      help: 'Calls of the sandbox backend that failed, without those that their caller broke off',
      labels,
    });
  }

  /** The same backend, with its calls measured. */
  measured(backend: SandboxBackend): SandboxBackend {
    return new Proxy(backend, {
      get: (target, property) => {
        const member: unknown = Reflect.get(target, property, target);
        if (typeof member !== 'function') {
          return member;
        }
        const operation = OPERATIONS.find((each) => each === property);
        return (...given: unknown[]): unknown => {
          const call = (): unknown => Reflect.apply(member, target, given);
          return operation === undefined ? call() : this.measure(target.kind, operation, given, call);
        };
      },
    });
  }

  private async measure(
    backend: string,
    operation: Operation,
    given: readonly unknown[],
    call: () => unknown,
  ): Promise<unknown> {
    const begunAt = performance.now();
    try {
      return await call();
    } catch (error) {
      if (!given.some((each) => each instanceof AbortSignal && each.aborted)) {
        this.errors.record({ backend, operation });
      }
      throw error;
    } finally {
      this.calls.record({ backend, operation }, (performance.now() - begunAt) / 1000);
    }
  }
}
