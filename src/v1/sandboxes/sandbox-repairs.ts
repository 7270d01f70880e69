import { Injectable, Logger } from '@nestjs/common';
import { SandboxBackend } from './backends/sandbox-backend.js';
import type { Difference } from './reconcile.js';
import { SandboxAutopsy } from './sandbox-autopsy.js';
import { FILES_GONE } from './sandbox-failure.js';
import { SandboxLeases } from './sandbox-leases.js';
import { SandboxListeners } from './sandbox-listeners.js';
import { SandboxStore } from './sandbox.store.js';

/** Makes rows and backend agree again. Every repair looks once more before it changes anything. */
@Injectable()
export class SandboxRepairs {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly store: SandboxStore,
    private readonly backend: SandboxBackend,
    private readonly leases: SandboxLeases,
    private readonly listeners: SandboxListeners,
    private readonly autopsy: SandboxAutopsy,
  ) {}

  async repair(difference: Difference): Promise<void> {
    const { kind, id } = difference;
    switch (kind) {
      case 'ended':
        return this.ended(id);
      case 'moved':
        return this.moved(id);
      case 'left-over':
        return this.stopLeftOver(id);
      case 'gone':
        return this.gone(id);
      case 'back':
        return this.back(id);
      case 'orphan':
        return this.removeOrphan(id);
    }
  }

  private async ended(id: string): Promise<void> {
    const sandbox = await this.store.find(id);
    if (sandbox?.status !== 'RUNNING') {
      return;
    }
    const cause = await this.autopsy.causeOfEnd(sandbox);
    if (cause === null) {
      return;
    }
    const { generation } = sandbox;
    if (await this.store.move(id, 'fail', { statusDetail: cause }, { status: 'RUNNING', generation })) {
      this.logger.warn('sandbox ended by itself', { sandbox_id: id, detail: cause });
      await this.listeners.tellStopped(id);
    }
  }

  private async moved(id: string): Promise<void> {
    const sandbox = await this.store.find(id);
    const { address, ports } = await this.backend.inspect(id);
    if (sandbox?.status === 'RUNNING' && address !== null) {
      const { generation } = sandbox;
      const change = { address, portAddresses: { generation, addresses: { ...ports } } };
      await this.store.change(id, change, { status: 'RUNNING', generation });
    }
  }

  private async gone(id: string): Promise<void> {
    const sandbox = await this.store.find(id);
    const { state } = await this.backend.inspect(id);
    if (!sandbox || state !== 'missing') {
      return;
    }
    const { status, statusDetail, updatedAt } = sandbox;
    const cause = status === 'ERROR' && statusDetail !== FILES_GONE ? statusDetail : null;
    const detail = cause === null ? FILES_GONE : `${FILES_GONE} Before that: ${cause}`;
    if (await this.store.move(id, 'vanish', { statusDetail: detail }, { status, updatedAt })) {
      this.logger.warn('the files of a sandbox are gone', { sandbox_id: id });
    }
  }

  private async back(id: string): Promise<void> {
    const { state } = await this.backend.inspect(id);
    const detail = 'Its files were not there for a while. Resuming starts it again.';
    if (state !== 'missing' && (await this.store.move(id, 'appear', { statusDetail: detail }))) {
      this.logger.log('the files of a sandbox are there again', { sandbox_id: id });
    }
  }

  /** Under a lease, so that no worker starts it in the meantime. */
  private async stopLeftOver(id: string): Promise<void> {
    if (!(await this.leases.take(id, ['PAUSED', 'ERROR']))) {
      return;
    }
    try {
      await this.backend.pause(id);
      this.logger.warn('stopped a sandbox that ran although its row says otherwise', { sandbox_id: id });
    } finally {
      await this.leases.release(id);
    }
  }

  private async removeOrphan(id: string): Promise<void> {
    if ((await this.store.read(id)) === null) {
      await this.backend.remove(id);
      this.logger.log('removed a sandbox that no row knows', { sandbox_id: id });
    }
  }
}
