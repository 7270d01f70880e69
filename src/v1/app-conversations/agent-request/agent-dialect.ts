import type {
  CredentialsRequest,
  SendMessageRequest,
  StartConversationRequest,
} from '@slipway/agent-protocol/conversation-api.js';
import type { GitAccess } from '@slipway/agent-protocol/git.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import type { modelEndpoint } from '@slipway/common/model-endpoint.js';
import type { AgentConfig } from '../../../config/agent-config.js';
import type { ToolServer } from '@slipway/tool-servers/tool-servers.js';
import type { ModelFacts } from '@slipway/models/model-catalogue.js';
import type { AgentSecret } from '../../../settings/secrets/agent-secrets.reader.js';
import type { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import type {
  AgentCommand,
  AgentCommandResult,
  AgentServerCommands,
} from '@slipway/agent-client/agent-server.commands.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import type { PortAddress } from '../../sandboxes/sandbox-urls.js';
import type { OperatorSkill } from '../../skills/operator-skills.js';
import type { CheckoutPlan, RepositoryCheckout } from '../start/repository-checkout.js';
import type { StartRequest } from '../start-task.entity.js';
import type { AcpAgent, StartedAcpAgent } from './acp-agents.js';
import type { AgentSettings } from '@slipway/settings/agent-settings.js';

export interface AgentStart {
  acp: StartedAcpAgent | null;
  conversationId: string;
  workingDir: string;
  request: Pick<StartRequest, 'initial_message' | 'system_message_suffix' | 'agent_type' | 'result_schema'> &
    Partial<
      Pick<StartRequest, 'started_by_agent' | 'parent_conversation_id' | 'selected_repository' | 'work_place'>
    >;
  /** Addresses for the user of web servers that the agent starts. */
  ports: readonly PortAddress[];
  /** From the request, or else from the settings. */
  model: string;
  facts: ModelFacts;
  settings: AgentSettings;
  config: Pick<AgentConfig, 'llmTimeoutSeconds' | 'condenserTokens' | 'tavilyApiUrl'>;
  mcpConfig: readonly ToolServer[] | null;
  /** Environment variables of the agent's tools. */
  secrets: ReadonlyMap<string, AgentSecret>;
  git: GitAccess | null;
  /** OUTBOUND_ALLOWLIST; null: any server. */
  outboundAllowlist: string[] | null;
  skills: readonly OperatorSkill[];
}

/** A model for a conversation that runs, from a profile. */
interface SwitchedModel {
  profile: string;
  llm: { model: string; api_key: string | null; base_url: string | null };
  parameters: JsonObject | undefined;
  price: ModelFacts['price'];
  /** Puts placeholders in the place of credentials. */
  conceal: (request: CredentialsRequest) => Promise<CredentialsRequest>;
}

/** The kind of agent server that runs in a sandbox: what it is told, and how it is asked. */
export interface AgentDialect {
  /** Whether a conversation goes on after a restart with the credentials that it began with. */
  readonly keepsCredentials: boolean;

  /** Whether it appends paths of its own to addresses of models, and knows those of providers. */
  readonly choosesAddresses: boolean;

  request: (start: AgentStart) => StartConversationRequest;

  /** The text as this agent server takes it, which may know fewer members. */
  message: (message: SendMessageRequest) => SendMessageRequest;

  /** Where it calls a model; null when the agent server decides. `toCheck` must be allowed by the operator. */
  modelServer: (
    model: string,
    baseUrl: string | null,
  ) => { endpoint: ReturnType<typeof modelEndpoint> | null; toCheck: string | null };

  /** Tells the user why it cannot start an agent; null when it can. */
  refusal: (agent: AcpAgent) => string | null;

  /** Settings without an effect, a sentence each. */
  ineffectiveSettings: (settings: AgentSettings, mcpConfig: readonly ToolServer[] | null) => string[];

  /** Whether keys that the operator or an organization shares may be given to it. */
  takesSharedKeys: (sandbox: { hasOwnImage: boolean }) => boolean;

  /** Reads what the published schema has no place for; null, without reading, where nothing else is understood. */
  unpublished: <T>(read: () => Promise<T>) => Promise<T | null>;

  /** Runs commands for a short time in the folder of the workspace, which exists afterwards. */
  runInWorkspace: (
    commands: AgentServerCommands,
    target: AgentServerTarget,
    call: Omit<AgentCommand, 'cwd'> & { workspace: string | null },
  ) => Promise<AgentCommandResult>;

  /** Returns notes for the user. @throws StartFailure */
  checkOut: (
    checkout: RepositoryCheckout,
    target: AgentServerTarget,
    plan: CheckoutPlan,
    signal: AbortSignal,
  ) => Promise<string[]>;

  /** @throws AgentServerError; DomainError conflict when it cannot change the model */
  switchModel: (
    agentServers: AgentServerClient,
    target: AgentServerTarget,
    conversationId: string,
    model: SwitchedModel,
  ) => Promise<void>;
}
