import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { LatestWrite } from '../../../common/async.js';
import { errorMessage } from '../../../common/errors/error-message.js';
import { SandboxBackendError, SandboxBackend } from '../backends/sandbox-backend.js';
import { SandboxEvents } from '../sandbox-events.js';
import { SandboxStarter, type StartProgress } from './sandbox-starter.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';

/** The last events of a sandbox are read in this time, or later from its files. */
const LISTENERS_MS = 10_000;

/**
 * What is done with a sandbox in each transitional status, until the row can change. Each step may be repeated after a
 * crash at any point. The caller holds the lease that `sandbox.leaseOwner` names.
 */
@Injectable()
export class SandboxTransitionsRunner {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly store: SandboxRepository,
    private readonly backend: SandboxBackend,
    private readonly starter: SandboxStarter,
    private readonly listeners: SandboxEvents,
    private readonly clock: Clock,
  ) {}

  /**
   * @param signal aborts when the row has changed under the step, or the service stops
   * @throws what the signal aborted with; or anything else that a later repetition may not meet
   */
  async run(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    switch (sandbox.status) {
      case 'STARTING':
        return this.start(sandbox, signal);
      case 'PAUSING':
        return this.pause(sandbox, signal);
      case 'DELETING':
        return this.remove(sandbox, signal);
      default:
        return;
    }
  }

  private async start(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const { id, leaseOwner } = sandbox;
    const generation = sandbox.generation + 1;
    const notes = this.progressNotes(sandbox);
    try {
      const { address, ports, detail } = await this.starter.start(sandbox, signal, (progress) =>
        notes.put(progress),
      );
      const running = await this.store.move(
        id,
        'started',
        {
          address,
          portAddresses: { generation, addresses: { ...ports } },
          generation,
          statusDetail: detail,
          lastActivityAt: new Date(this.clock.now()),
        },
        { leaseOwner: leaseOwner ?? '' },
      );
      if (running) {
        this.logger.log('sandbox runs', { sandbox_id: id, generation });
        await this.listeners.emitRunning(id);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SandboxBackendError)) {
        throw error;
      }
      await this.fail(sandbox, error.message);
      // What did not answer in time may run still.
      await this.stopLeftOver(sandbox);
    }
  }

  private async pause(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const { id, leaseOwner, deadlineAt } = sandbox;
    await this.beforeStop(sandbox);
    signal.throwIfAborted();
    try {
      await this.backend.pause(id);
    } catch (error) {
      if (deadlineAt !== null && this.clock.now() < deadlineAt.getTime()) {
        throw error;
      }
      await this.fail(sandbox, `It could not be stopped: ${errorMessage(error)}`);
      return;
    }
    if (await this.store.move(id, 'paused', {}, { leaseOwner: leaseOwner ?? '' })) {
      this.logger.log('sandbox paused', { sandbox_id: id });
      await this.listeners.emitStopped(id);
    }
  }

  private async remove(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const { id, backend, leaseOwner } = sandbox;
    await this.beforeStop(sandbox);
    signal.throwIfAborted();
    if (backend === this.backend.kind) {
      await this.backend.remove(id);
    } else {
      this.logger.warn('the files of a removed sandbox stay: it was made by another backend', {
        sandbox_id: id,
        backend,
      });
    }
    if (await this.store.delete(id, { status: 'DELETING', leaseOwner: leaseOwner ?? '' })) {
      this.logger.log('sandbox removed', { sandbox_id: id });
      await this.listeners.emitStopped(id);
    }
  }

  /** Others get to read what its agent server has, while that lasts. */
  private async beforeStop({ id, address }: Sandbox): Promise<void> {
    if (address === null) {
      return;
    }
    const giveUp = new AbortController();
    try {
      await Promise.race([
        this.listeners.emitBeforeStop(id),
        delay(LISTENERS_MS, undefined, { signal: giveUp.signal, ref: false }),
      ]);
    } finally {
      giveUp.abort();
    }
  }

  private async fail({ id, leaseOwner }: Sandbox, detail: string): Promise<void> {
    const held = { leaseOwner: leaseOwner ?? '' };
    if (await this.store.move(id, 'fail', { statusDetail: detail }, held)) {
      this.logger.warn('sandbox failed', { sandbox_id: id, detail });
      await this.listeners.emitStopped(id);
    }
  }

  private async stopLeftOver({ id, backend }: Sandbox): Promise<void> {
    if (backend !== this.backend.kind) {
      return;
    }
    try {
      await this.backend.pause(id);
    } catch (error) {
      // The monitor tries again for as long as it runs.
      this.logger.warn('a sandbox that failed could not be stopped', {
        sandbox_id: id,
        error: errorMessage(error),
      });
    }
  }

  /** Lines of progress for people; the start goes on whether or not they can be written. */
  private progressNotes({ id, leaseOwner }: Sandbox): LatestWrite<StartProgress> {
    return new LatestWrite(
      ({ detail, deadlineAt }) =>
        this.store.change(
          id,
          { ...(detail !== null && { statusDetail: detail }), deadlineAt: new Date(deadlineAt) },
          { status: 'STARTING', leaseOwner: leaseOwner ?? '' },
        ),
      (error) => {
        this.logger.warn('progress was not written', { sandbox_id: id, error: errorMessage(error) });
      },
    );
  }
}
