import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AgentServerHttp } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
import { SandboxEvents } from '../sandbox-events.js';
import { SandboxKeyQueries } from '../sandbox-key.guard.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { sessionKeyHash } from '../session-key.js';

/** Ends sandboxes that send more than the service accepts. The row becomes ERROR; the reconciler does the rest. */
@Injectable()
export class SandboxBreachService implements OnModuleInit {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly http: AgentServerHttp,
    private readonly keys: SandboxKeyQueries,
    private readonly sandboxes: SandboxRepository,
    private readonly events: SandboxEvents,
  ) {}

  onModuleInit(): void {
    this.http.onBreach((target, { excess }) => {
      this.fail(target, `Its agent server sent ${excess}, so the sandbox was stopped.`).catch(
        (error: unknown) =>
          this.logger.error('failed to end a sandbox that broke a rule', { error: errorMessage(error) }),
      );
    });
  }

  /** Fails the target's sandbox unless it was restarted meanwhile. `cause` is a sentence for its user. */
  async fail({ sessionKey }: AgentServerTarget, cause: string): Promise<void> {
    const holder = await this.keys.find(sessionKey);
    const sandbox = holder && (await this.sandboxes.find(holder.sandboxId));
    if (!sandbox?.sessionKeyHash.equals(sessionKeyHash(sessionKey))) {
      return;
    }
    const { id, generation } = sandbox;
    const failed = await this.sandboxes.transition(id, 'fail', {
      change: { statusDetail: cause },
      condition: { status: 'RUNNING', generation },
      cause: 'broke_a_rule',
    });
    if (failed) {
      this.logger.warn('sandbox broke a rule', { sandbox_id: id, detail: cause });
      await this.events.emit('stopped', id);
    }
  }
}
