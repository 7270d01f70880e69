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

  async measure<T>(operation: Operation, call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
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

/** The same backend, with its operations measured. */
export function measuredBackend(backend: SandboxBackend, metrics: BackendMetrics): SandboxBackend {
  return new Proxy(backend, {
    get: (target, name): unknown => {
      const operation = OPERATIONS.find((each) => each === name);
      if (operation === undefined) {
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      }
      return async (...args: unknown[]): Promise<unknown> => {
        const call = async (): Promise<unknown> => await Reflect.apply(target[operation], target, args);
        const signal = args.find((arg) => arg instanceof AbortSignal);
        return await metrics.measure(operation, call, signal);
      };
    },
  });
}
