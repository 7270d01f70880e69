import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { type Instrument, Metrics } from '../../observability/metrics.js';
import type { SandboxBackend } from './backends/sandbox-backend.js';

const OPERATIONS = ['prepare', 'start', 'inspect', 'logTail', 'pause', 'resume', 'remove', 'list'] as const;
type Operation = (typeof OPERATIONS)[number];

type OperationLabels = { backend: readonly string[]; operation: typeof OPERATIONS };

const SECONDS = [0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60];

@Injectable()
export class BackendMetrics {
  private readonly calls: Instrument<OperationLabels>;
  private readonly errors: Instrument<OperationLabels>;
  private readonly backend: string;

  constructor(metrics: Metrics, config: AppConfig) {
    this.backend = config.sandboxes.backend;
    const labels = { backend: [this.backend], operation: OPERATIONS };
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

  async measure(operation: Operation, call: () => unknown, signal?: AbortSignal): Promise<unknown> {
    const { backend } = this;
    const begunAt = performance.now();
    try {
      return await call();
    } catch (error) {
      if (signal?.aborted !== true) {
        this.errors.record({ backend, operation });
      }
      throw error;
    } finally {
      this.calls.record({ backend, operation }, (performance.now() - begunAt) / 1000);
    }
  }
}

/** The same backend, with its calls measured. */
export function measured(backend: SandboxBackend, metrics: BackendMetrics): SandboxBackend {
  return new Proxy(backend, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') {
        return member;
      }
      const operation = OPERATIONS.find((each) => each === name);
      return (...args: unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(member, target, args);
        const signal = args.find((each) => each instanceof AbortSignal);
        return operation === undefined ? call() : metrics.measure(operation, call, signal);
      };
    },
  });
}
