import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { AgentServerError } from '../agent-servers/agent-server.http.js';
import { ConversationActionsService } from './conversation-actions.service.js';
import { ConversationRepository } from './conversation.repository.js';

/** For agents that speak the Agent Client Protocol. */
@Injectable()
export class AcpModelService {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly agentServers: AgentServerClient,
    private readonly conversations: ConversationRepository,
  ) {}

  /**
   * @throws DomainError bad_request unless it is an ACP agent that can change its model; gateway_timeout when its
   *   program does not respond; others as `ConversationActionsService`
   */
  async switchAcpModel(userId: string, givenId: string, model: string): Promise<void> {
    const entry = { action: 'conversation.switch_model', details: { model } } as const;
    await this.actions.change(userId, givenId, entry, async (target, { id }) => {
      try {
        await this.agentServers.switchAcpModel(target, id, model);
      } catch (error) {
        throw error instanceof AgentServerError ? switchProblem(error) : error;
      }
      await this.conversations.update(userId, id, { llmModel: model });
    });
  }
}

function switchProblem(error: AgentServerError): Error {
  switch (error.status) {
    case 400:
      return new DomainError('bad_request', 'conflict', error.detail, { cause: error });
    case 504:
      return acpAgentSilent(error);
    default:
      return error;
  }
}

export function acpAgentSilent(cause?: AgentServerError): DomainError {
  const detail = 'The program of the agent did not answer in time: try again.';
  return new DomainError('gateway_timeout', 'upstream_error', detail, { cause });
}
