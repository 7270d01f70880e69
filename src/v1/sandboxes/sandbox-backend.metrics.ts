import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { type Instrument, Metrics } from '../../observability/metrics.js';
import type { DiskSpace } from './backends/disk-guard.js';
import {
  type BackendSweep,
  type PreparationLine,
  SandboxBackend,
  type SandboxBackendKind,
  type SandboxFacts,
  type SandboxIsolation,
  type SandboxLaunch,
  type WarmStarts,
} from './backends/sandbox-backend.js';

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

export class MeasuredBackend extends SandboxBackend {
  readonly kind: SandboxBackendKind;
  override readonly warm: WarmStarts | null;
  override readonly connect: SandboxBackend['connect'];

  constructor(
    private readonly backend: SandboxBackend,
    private readonly metrics: BackendMetrics,
  ) {
    super();
    this.kind = backend.kind;
    this.warm = backend.warm;
    this.connect = backend.connect;
  }

  get isolation(): SandboxIsolation {
    return this.backend.isolation;
  }

  async prepare(): Promise<PreparationLine[]> {
    return await this.metrics.measure('prepare', () => this.backend.prepare());
  }

  async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.metrics.measure('start', () => this.backend.start(launch, signal), signal);
  }

  async inspect(id: string): Promise<SandboxFacts> {
    return await this.metrics.measure('inspect', () => this.backend.inspect(id));
  }

  async logTail(id: string): Promise<string> {
    return await this.metrics.measure('logTail', () => this.backend.logTail(id));
  }

  async pause(id: string, mayStop?: () => boolean): Promise<void> {
    await this.metrics.measure('pause', () => this.backend.pause(id, mayStop));
  }

  async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.metrics.measure('resume', () => this.backend.resume(launch, signal), signal);
  }

  async remove(id: string): Promise<void> {
    await this.metrics.measure('remove', () => this.backend.remove(id));
  }

  async list(): Promise<SandboxFacts[]> {
    return await this.metrics.measure('list', () => this.backend.list());
  }

  async disk(): Promise<DiskSpace | null> {
    return await this.backend.disk();
  }

  override onChange(listener: () => void): void {
    this.backend.onChange(listener);
  }

  override async disconnect(): Promise<void> {
    await this.backend.disconnect();
  }

  override async sweep(): Promise<BackendSweep> {
    return await this.backend.sweep();
  }
}
