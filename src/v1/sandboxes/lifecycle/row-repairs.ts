import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxEvents } from '../sandbox-events.js';
import { SandboxKeyQueries } from '../sandbox-key.guard.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { sessionKeyBinding, sessionKeyHash } from '../session-key.js';
import { endedByItself, FILES_GONE, madeByOtherBackend } from './exit-diagnosis.js';
import { requireAddresses } from './sandbox-starter.js';

/**
 * Corrects rows of sandboxes that say something else than the backend has. Fails those, too, that send more than the
 * service accepts: their program then is a left-over.
 */
@Injectable()
export class RowRepairs implements OnModuleInit {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly backend: SandboxBackend,
    private readonly cipher: SecretCipher,
    private readonly events: SandboxEvents,
    private readonly http: AgentServerHttp,
    private readonly keys: SandboxKeyQueries,
  ) {}

  onModuleInit(): void {
    this.http.onBreach(({ sessionKey }, detail) => {
      this.failForBreach(sessionKey, detail).catch((error: unknown) =>
        this.logger.error('failed to end a sandbox that broke a rule', { error: errorMessage(error) }),
      );
    });
  }

  async fail(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    if (sandbox?.status !== 'RUNNING') {
      return;
    }
    const cause = await this.diagnose(sandbox);
    if (cause !== null) {
      await this.failAsSeen(sandbox, cause, 'sandbox exited by itself');
    }
  }

  /** The cause in words for people; null when the sandbox runs after all. */
  private async diagnose({ id, backend, sessionKey }: Sandbox): Promise<string | null> {
    if (backend !== this.backend.kind) {
      return madeByOtherBackend(backend, this.backend.kind);
    }
    const facts = await this.backend.inspect(id);
    if (facts.state === 'running') {
      return null;
    }
    const log = await this.backend.logTail(id);
    return endedByItself({ facts, log, sessionKey: this.cipher.decrypt(sessionKey, sessionKeyBinding(id)) });
  }

  /** Unless the sandbox was started again meanwhile, under another key. */
  private async failForBreach(sessionKey: string, detail: string): Promise<void> {
    const holder = await this.keys.find(sessionKey);
    const sandbox = holder && (await this.sandboxes.find(holder.sandboxId));
    if (sandbox?.sessionKeyHash.equals(sessionKeyHash(sessionKey))) {
      await this.failAsSeen(sandbox, detail, 'sandbox broke a rule', 'broke_a_rule');
    }
  }

  private async failAsSeen(
    { id, generation }: Pick<Sandbox, 'id' | 'generation'>,
    detail: string,
    message: string,
    cause?: 'broke_a_rule',
  ): Promise<void> {
    const change = { statusDetail: detail };
    const condition = { status: 'RUNNING' as const, generation };
    if (await this.sandboxes.transition(id, 'fail', { change, condition, cause })) {
      this.logger.warn(message, { sandbox_id: id, detail });
      await this.events.emit('stopped', id);
    }
  }

  async updateAddress(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    const facts = await this.backend.inspect(id);
    const { address, ports } = facts;
    if (sandbox?.status !== 'RUNNING' || address === null) {
      return;
    }
    const { generation } = sandbox;
    try {
      requireAddresses(facts);
    } catch (error) {
      // The program goes on until the next comparison finds that its row says ERROR.
      await this.failAsSeen(sandbox, errorMessage(error), 'sandbox reported an invalid address');
      return;
    }
    const change = { address, portAddresses: { generation, addresses: { ...ports } } };
    await this.sandboxes.update(id, change, { status: 'RUNNING', generation });
  }

  async markMissing(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    const { state } = await this.backend.inspect(id);
    if (!sandbox || state !== 'missing') {
      return;
    }
    const { status, statusDetail, updatedAt } = sandbox;
    const cause = status === 'ERROR' && statusDetail !== FILES_GONE ? statusDetail : null;
    const detail = cause === null ? FILES_GONE : `${FILES_GONE} Before that: ${cause}`;
    const asSeen = { status, updatedAt };
    if (
      await this.sandboxes.transition(id, 'vanish', { change: { statusDetail: detail }, condition: asSeen })
    ) {
      this.logger.warn('sandbox files are missing', { sandbox_id: id });
    }
  }

  async markPaused(id: string): Promise<void> {
    const { state } = await this.backend.inspect(id);
    const statusDetail = 'Its files were not there for a while. Resuming starts it again.';
    if (
      state !== 'missing' &&
      (await this.sandboxes.transition(id, 'appear', { change: { statusDetail } }))
    ) {
      this.logger.log('sandbox files found again', { sandbox_id: id });
    }
  }
}
