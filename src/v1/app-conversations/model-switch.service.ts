import { Injectable } from '@nestjs/common';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { unknownProfile } from '../../settings/profiles/profiles.service.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { AgentInputsReader } from './agent-request/agent-inputs.reader.js';
import { agentDialect } from './agent-request/agent-dialects.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import { modelVerdict } from './agent-request/settings-check.js';
import { OutsideCredentials } from './outside-credentials/outside-credentials.js';
import { RunningConversations } from './running-conversations.js';
import { ConversationRepository } from './conversation.repository.js';

@Injectable()
export class ModelSwitchService {
  constructor(
    private readonly running: RunningConversations,
    private readonly inputs: AgentInputsReader,
    private readonly agentServers: AgentServerClient,
    private readonly conversations: ConversationRepository,
    private readonly specs: SandboxSpecs,
    private readonly addresses: OutboundAddresses,
    private readonly catalogue: ModelCatalogue,
    private readonly outside: OutsideCredentials,
  ) {}

  /**
   * Gives a profile's model, address and key to the agent server, and remembers the profile for the key after a
   * restart.
   * @throws DomainError not_found for an unknown profile, conflict when its model cannot be called or the agent is
   *   another one; others as `RunningConversations`
   */
  async switchProfile(userId: string, givenId: string, name: string): Promise<void> {
    const configuration = await this.inputs.readConfiguration(userId, name);
    if (configuration.lacksProfile) {
      throw unknownProfile(name);
    }
    const entry = { action: 'conversation.switch_profile', details: { profile: name } } as const;
    await this.running.change(userId, givenId, entry, async (target, { id }) => {
      const dialect = agentDialect(this.specs.find(target.specId));
      const isOurs = dialect.takesSharedKeys(target);
      const { settings } = this.inputs.withDefaults(configuration, { model: null, isOurs });
      const verdict = modelVerdict(settings.llm_model, settings, dialect, this.addresses);
      if (verdict.problem !== null) {
        throw new DomainError('conflict', `Profile '${name}': ${verdict.problem}`);
      }
      const { model } = verdict;
      const begun = await this.conversations.find(userId, id);
      if (begun?.agent || begun?.agentKind === 'acp') {
        throw new DomainError(
          'conflict',
          `The agent ${begun.agent ?? 'of this conversation'} has models of its own: POST switch_acp_model changes them.`,
        );
      }
      const llm = { model, api_key: settings.llm_api_key, base_url: settings.llm_base_url };
      const { price } = await this.catalogue.facts(model);
      const use = { profile: name, model: null, ...(dialect.choosesAddresses && { stock: true as const }) };
      await dialect.switchModel(this.agentServers, target, id, {
        profile: name,
        llm,
        parameters: settings.llm_parameters,
        price,
        conceal: async (request) => (await this.outside.concealer(target, use)).update(request),
      });
      await this.conversations.update(userId, id, {
        llmModel: model,
        llmBaseUrl: llm.base_url ?? '',
        llmProfile: name,
      });
    });
  }

  /**
   * Changes the model of an agent that speaks the Agent Client Protocol.
   * @throws DomainError bad_request unless its agent is one that can change its model; gateway_timeout when its program does
   * not respond; others as `RunningConversations`
   */
  async switchAcpModel(userId: string, givenId: string, model: string): Promise<void> {
    const entry = { action: 'conversation.switch_model', details: { model } } as const;
    await this.running.change(userId, givenId, entry, async (target, { id }) => {
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
      return new DomainError('conflict', error.detail, { kind: 'bad_request', cause: error });
    case 504:
      return acpAgentSilent(error);
    default:
      return error;
  }
}

export function acpAgentSilent(cause?: AgentServerError): DomainError {
  const detail = 'The program of the agent did not answer in time: try again.';
  return new DomainError('upstream_error', detail, { kind: 'gateway_timeout', cause });
}
