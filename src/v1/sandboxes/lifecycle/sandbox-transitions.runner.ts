import { Injectable, Logger } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import { LatestWrite, within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import { errorType, failSpan, type SpanStart, tracedFrom } from '@slipway/common/spans.js';
import { removeSandbox, SandboxBackend, SandboxBackendError } from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxEvents } from '../sandbox-events.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxMetrics } from '../sandbox.metrics.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { isStartedAgain } from './exit-diagnosis.js';
import { SandboxStarter, type StartProgress, StepInterrupted } from './sandbox-starter.js';

/** A stop waits this long for listeners; what they have not read by then they read from the files. */
const BEFORE_STOP_MS = 10_000;

/** A crash may happen at any point, so every step is repeatable. The caller holds the sandbox's lease. */
@Injectable()
export class SandboxTransitionsRunner {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly backend: SandboxBackend,
    private readonly starter: SandboxStarter,
    private readonly events: SandboxEvents,
    private readonly clock: Clock,
    private readonly metrics: SandboxMetrics,
  ) {}

  /** @throws the signal's reason, or an error after which the step may be repeated */
  async run(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const traced = (name: string, work: (span: Span) => Promise<void>): Promise<void> =>
      tracedFrom(sandbox.traceparent, transitionSpan(name, sandbox), work);
    switch (sandbox.status) {
      case 'STARTING':
        return traced('start sandbox', (span) => this.start(sandbox, signal, span));
      case 'PAUSING':
        return traced('pause sandbox', (span) => this.pause(sandbox, signal, span));
      case 'DELETING':
        return traced('remove sandbox', () => this.remove(sandbox, signal));
      default:
        return;
    }
  }

  private async start(sandbox: Sandbox, signal: AbortSignal, span: Span): Promise<void> {
    const { id, leaseOwner } = sandbox;
    const generation = sandbox.generation + 1;
    const kind = sandbox.generation === 0 ? 'start' : 'resume';
    // The request changed the row; where a worker took the start over from another one, its time counts too.
    const requestedAt = sandbox.updatedAt.getTime();
    const progress = this.progressWriter(sandbox);
    try {
      // Progress has written over it by now.
      const again = isStartedAgain(sandbox.statusDetail) ? [sandbox.statusDetail] : [];
      const [{ address, ports, detail }] = await Promise.all([
        this.starter.start(sandbox, signal, (update) => progress.put(update)),
        this.events.emit('starting', id),
      ]);
      const running = await this.sandboxes.transition(id, 'started', {
        change: {
          address,
          portAddresses: { generation, addresses: { ...ports } },
          generation,
          statusDetail: [...again, detail ?? []].flat().join(' ') || null,
          lastActivityAt: new Date(this.clock.now()),
        },
        condition: { leaseOwner: leaseOwner ?? '' },
      });
      if (running) {
        this.metrics.started(kind, this.clock.now() - requestedAt);
        this.logger.log('sandbox started', { sandbox_id: id, generation });
        await this.events.emit('running', id);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SandboxBackendError)) {
        throw error;
      }
      failSpan(span, error.name);
      this.metrics.startFailed(kind);
      if (await this.fail(sandbox, error.message)) {
        // A program that did not answer in time may still run.
        await this.stopLeftOver(sandbox);
      }
    }
  }

  private async pause(sandbox: Sandbox, signal: AbortSignal, span: Span): Promise<void> {
    const { id, leaseOwner, deadlineAt } = sandbox;
    await this.beforeStop(sandbox);
    const leaseUntil = await this.requireLease(sandbox, signal);
    try {
      await this.backend.pause(id, () => this.clock.now() < leaseUntil);
    } catch (error) {
      if (deadlineAt !== null && this.clock.now() < deadlineAt.getTime()) {
        throw error;
      }
      failSpan(span, errorType(error));
      await this.fail(sandbox, `It could not be stopped: ${errorMessage(error)}`);
      return;
    }
    if (await this.sandboxes.transition(id, 'paused', { condition: { leaseOwner: leaseOwner ?? '' } })) {
      this.logger.log('sandbox paused', { sandbox_id: id });
      await this.events.emit('stopped', id);
    }
  }

  private async remove(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const { id, leaseOwner } = sandbox;
    await this.beforeStop(sandbox);
    await this.requireLease(sandbox, signal);
    const removed = await this.removeFiles(sandbox);
    if (await this.sandboxes.delete(id, { status: 'DELETING', leaseOwner: leaseOwner ?? '' })) {
      this.logger.log('sandbox removed', { sandbox_id: id });
      if (!removed) {
        this.logger.warn('failed to remove all files of sandbox', { sandbox_id: id });
      }
      await this.events.emit('stopped', id);
    }
  }

  private async removeFiles({ id, backend }: Sandbox): Promise<boolean> {
    if (backend !== this.backend.kind) {
      this.logger.warn('failed to remove sandbox files: another backend made them', {
        sandbox_id: id,
        backend,
      });
      return false;
    }
    return removeSandbox(this.backend, id);
  }

  /** Lets listeners read what the agent server has, for as long as a stop may wait. */
  private async beforeStop({ id, address }: Sandbox): Promise<void> {
    if (address !== null) {
      await within(BEFORE_STOP_MS, this.events.emit('stopping', id));
    }
  }

  /**
   * After a stall another process may have restarted the sandbox, and a backend's work is not undone. Returns the
   * lease's end, epoch milliseconds.
   * @throws the reason of the signal; StepInterrupted
   */
  private async requireLease({ id, status, leaseOwner }: Sandbox, signal: AbortSignal): Promise<number> {
    const row = await this.sandboxes.read(id);
    signal.throwIfAborted();
    const until = row?.leaseUntil?.getTime() ?? -Infinity;
    if (row?.status !== status || row.leaseOwner !== leaseOwner || until <= this.clock.now()) {
      throw new StepInterrupted('the sandbox has another status or another worker by now');
    }
    return until;
  }

  private async fail({ id, leaseOwner }: Sandbox, detail: string): Promise<boolean> {
    const failed = await this.sandboxes.transition(id, 'fail', {
      change: { statusDetail: detail },
      condition: { leaseOwner: leaseOwner ?? '' },
    });
    if (failed) {
      this.logger.warn('sandbox failed', { sandbox_id: id, detail });
      await this.events.emit('stopped', id);
    }
    return failed;
  }

  private async stopLeftOver({ id, backend }: Sandbox): Promise<void> {
    if (backend !== this.backend.kind) {
      return;
    }
    try {
      await this.backend.pause(id);
    } catch (error) {
      // The reconciler tries again for as long as the program runs.
      this.logger.warn('failed to stop a failed sandbox', { sandbox_id: id, error: errorMessage(error) });
    }
  }

  /** The start goes on whether or not its progress can be written. */
  private progressWriter({ id, leaseOwner }: Sandbox): LatestWrite<StartProgress> {
    return new LatestWrite(
      ({ detail, deadlineAt }) =>
        this.sandboxes.update(
          id,
          { ...(detail !== null && { statusDetail: detail }), deadlineAt: new Date(deadlineAt) },
          { status: 'STARTING', leaseOwner: leaseOwner ?? '' },
        ),
      (error) => {
        this.logger.warn('failed to write start progress', { sandbox_id: id, error: errorMessage(error) });
      },
    );
  }
}

function transitionSpan(name: string, { id, specId, backend, generation }: Sandbox): SpanStart {
  return {
    name,
    attributes: {
      'slipway.sandbox.id': id,
      'slipway.sandbox.backend': backend,
      'slipway.sandbox.specification': specId,
      'slipway.sandbox.generation': generation,
    },
  };
}
