import { Injectable } from '@nestjs/common';
import type { StartConversationRequest } from '../../../agent-protocol/conversation.js';
import { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import { AppConfig } from '../../../config/app-config.js';
import type { PortAddress } from '../../sandboxes/sandbox-urls.js';
import type { StartRequest } from '../start-task.entity.js';
import { AgentInputsReader } from './agent-inputs.reader.js';
import { toAgentRequest } from './agent-request.mapper.js';
import type { AgentDialect } from './agent-settings.js';
import { GitAccessReader } from './git-access.reader.js';
import { ModelCatalogue } from './model-catalogue.js';
import { checkSettings, ineffectiveSettings } from './settings-check.js';

/** A conversation that is to begin. */
interface NewConversation {
  userId: string;
  conversationId: string;
  workingDir: string;
  /** Where the user reaches the web servers that the agent starts. */
  ports: readonly PortAddress[];
  request: StartRequest;
  /** Secrets of the request, in clear. */
  secrets: ReadonlyMap<string, string>;
  dialect: AgentDialect;
}

/** The request for an agent server, or why the conversation cannot begin, for the user. */
type AgentRequest =
  | { problem: string }
  | {
      problem: null;
      body: StartConversationRequest;
      model: string;
      /** For the user: which settings have no effect. */
      notes: string[];
    };

/** Builds the request that begins a conversation from what its user has stored. */
@Injectable()
export class AgentRequestBuilder {
  constructor(
    private readonly inputs: AgentInputsReader,
    private readonly git: GitAccessReader,
    private readonly catalogue: ModelCatalogue,
    private readonly addresses: OutboundAddresses,
    private readonly config: AppConfig,
  ) {}

  /** Why no conversation can begin with the user's settings; null when one can. */
  async problem(
    userId: string,
    request: Pick<StartRequest, 'llm_model'>,
    dialect: AgentDialect,
  ): Promise<string | null> {
    const configuration = await this.inputs.readConfiguration(userId);
    const model = request.llm_model ?? configuration.settings.llm_model;
    return checkSettings({ ...configuration, model, dialect }, this.addresses).problem;
  }

  /** @throws SecretDecryptionError when something stored is not readable with the configured keys */
  async build(conversation: NewConversation): Promise<AgentRequest> {
    const { userId, request, dialect } = conversation;
    const { settings, mcpConfig, secrets, credentials } = await this.inputs.read(
      userId,
      conversation.secrets,
    );
    const verdict = checkSettings(
      { model: request.llm_model ?? settings.llm_model, settings, mcpConfig, dialect },
      this.addresses,
    );
    if (verdict.problem !== null) {
      return { problem: verdict.problem };
    }
    const { model } = verdict;
    const body = toAgentRequest({
      dialect,
      conversationId: conversation.conversationId,
      workingDir: conversation.workingDir,
      ports: conversation.ports,
      request,
      model,
      facts: await this.catalogue.facts(model),
      settings,
      config: this.config.agent,
      mcpConfig,
      secrets,
      git: dialect === 'slipway' ? await this.git.read(userId, settings, credentials) : null,
      outboundAllowlist: this.config.outbound.allowlist,
    });
    return { problem: null, body, model, notes: ineffectiveSettings(dialect, settings) };
  }
}
