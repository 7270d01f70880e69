import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { found } from '../../common/errors/domain-error.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { type PortAddress, SandboxUrls } from './sandbox-urls.js';
import { type RunningSandbox, RunningSandboxQueries, SandboxQueries } from './sandbox.queries.js';

export interface SandboxPortState extends PortAddress {
  /** Null: its agent server does not tell. */
  listening: boolean | null;
}

/** The ports for what agents start, as they are at this moment. */
@Injectable()
export class SandboxPorts {
  private readonly logger = new Logger(SandboxPorts.name);

  constructor(
    private readonly queries: SandboxQueries,
    private readonly running: RunningSandboxQueries,
    private readonly urls: SandboxUrls,
    private readonly agentServers: AgentServerClient,
  ) {}

  /** None unless it runs. @throws DomainError not_found */
  async list(userId: string, id: string): Promise<SandboxPortState[]> {
    found(await this.queries.find(userId, id), 'sandbox');
    const target = await this.running.target(id);
    const ports = target === null ? [] : this.urls.openPorts(id, target.sessionKey, target.ports);
    if (target === null || ports.length === 0) {
      return [];
    }
    const listening = await this.listening(
      target,
      ports.map(({ name }) => name),
    );
    return ports.map((port) => ({ ...port, listening: listening && listening.includes(port.name) }));
  }

  private async listening(target: RunningSandbox, names: readonly string[]): Promise<string[] | null> {
    try {
      return await this.agentServers.listeningPorts(target, names);
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.debug('failed to ask for ports', {
        sandbox_id: target.sandboxId,
        error: errorMessage(error),
      });
      return null;
    }
  }
}
