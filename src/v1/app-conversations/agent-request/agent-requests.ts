import { Injectable } from '@nestjs/common';
import type { StartConversationRequest } from '../../../agent-protocol/start-conversation-request.js';
import { OutboundAddresses } from '../../../common/http/outbound-addresses.js';
import { AppConfig } from '../../../config/app-config.js';
import type { PortAddress } from '../../sandboxes/sandbox-addresses.js';
import type { StartRequest } from '../start/start-request.js';
import type { AgentDialect } from './agent-dialect.js';
import { AgentInputsReader } from './agent-inputs.reader.js';
import { GitAccessReader } from './git-access.reader.js';
import { ModelCatalogue } from './model-catalogue.js';
import { settingsNotes } from './settings-notes.js';
import { settingsProblem } from './settings-problem.js';
import { toAgentRequest } from './to-agent-request.js';

/** A conversation that is to begin. */
export interface ConversationPlan {
  userId: string;
  conversationId: string;
  workingDir: string;
  /** Where the user reaches what the agent starts. */
  ports: readonly PortAddress[];
  request: StartRequest;
  /** Secrets of the request, in clear. */
  secrets: ReadonlyMap<string, string>;
  dialect: AgentDialect;
}

/** How an agent server is asked to begin it; or why it cannot begin, for the user. */
export type AgentRequest =
  { problem: string } | { problem: null; body: StartConversationRequest; model: string; notes: string[] };

/** Makes of what is stored what agent servers are told. */
@Injectable()
export class AgentRequests {
  constructor(
    private readonly inputs: AgentInputsReader,
    private readonly git: GitAccessReader,
    private readonly catalogue: ModelCatalogue,
    private readonly addresses: OutboundAddresses,
    private readonly config: AppConfig,
  ) {}

  /** What keeps the user's settings from being used, before a sandbox is waited for; null when nothing does. */
  async problem(
    userId: string,
    request: Pick<StartRequest, 'llm_model'>,
    dialect: AgentDialect,
  ): Promise<string | null> {
    const inputs = await this.inputs.readSettings(userId);
    const model = request.llm_model ?? inputs.settings.llm_model;
    return settingsProblem({ ...inputs, model, dialect }, this.addresses);
  }

  async build(plan: ConversationPlan): Promise<AgentRequest> {
    const { userId, request, dialect } = plan;
    const { settings, mcpConfig, secrets } = await this.inputs.read(userId, plan.secrets);
    const model = request.llm_model ?? settings.llm_model;
    const problem = settingsProblem({ model, settings, mcpConfig, dialect }, this.addresses);
    if (problem !== null || model === null) {
      return { problem: problem ?? 'No model is set.' };
    }
    const body = toAgentRequest({
      dialect,
      conversationId: plan.conversationId,
      workingDir: plan.workingDir,
      ports: plan.ports,
      request,
      model,
      facts: await this.catalogue.facts(model),
      settings,
      config: this.config.agent,
      mcpConfig,
      secrets,
      git: dialect === 'slipway' ? await this.git.find(userId, settings) : null,
      outboundAllowlist: this.config.outbound.allowlist,
    });
    return { problem: null, body, model, notes: settingsNotes(dialect, settings) };
  }
}
