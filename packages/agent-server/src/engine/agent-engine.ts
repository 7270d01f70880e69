import type { ProviderMetadata } from 'ai';
import type {
  ConversationInfo,
  ConversationStatus,
  CostSource,
  McpServers,
} from '@slipway/agent-protocol/conversation-api.js';
import type { ModelParameters, ModelPrice } from '@slipway/agent-protocol/conversation-schemas.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import type { GitAccess } from '@slipway/agent-protocol/git.js';
import type { PathAlias } from '../tool-view.js';
import type { RiskPolicy } from '../security/risk-assessment.js';
import type { WebhookOptions } from '../webhooks/webhook-sender.js';

export type ExecutionStatus = Exclude<ConversationStatus, 'deleting'>;

type WithoutIdentity<E> = E extends AgentEvent ? Omit<E, 'id' | 'timestamp'> : never;

export type NewEvent = WithoutIdentity<AgentEvent>;

export interface EngineSettings {
  llm: { model: string; apiKey: string | null; baseUrl: string | null; parameters?: ModelParameters };
  llmTimeoutMs: number;
  maxIterations: number;
  /** USD for the whole conversation. */
  maxBudget: number | null;
  confirmationPolicy: 'never' | 'always' | 'risky';
  /** What is risky; by default what the model itself calls a high risk. */
  risk?: RiskPolicy;
  /** Size above which the history is condensed; null means never. */
  condenserTokens: number | null;
  language: string | null;
  mcpConfig: McpServers | null;
  searchApiKey: string | null;
  tavilyApiUrl: string;
  workingDir: string;
  systemPromptSuffix: string | null;
  /** USD per million tokens, by model name. */
  modelPrices: Record<string, ModelPrice>;
  stuckDetection: boolean;
  /** JSON Schema of the result that the agent has to finish with; null if none is asked for. */
  resultSchema: Record<string, unknown> | null;
  /** Servers that may be called at addresses from users (see `HostAllowlist`); null allows any. */
  outboundAllowlist: readonly string[] | null;
  /** The agent to start; null if the conversation's agent is our own. */
  acp: AcpLaunch | null;
}

/** How to start an agent that speaks the Agent Client Protocol. The model settings above do not concern it. */
export interface AcpLaunch {
  command: readonly string[];
  /** Added to the variables of tools; may hold secrets. */
  environment: Readonly<Record<string, string>>;
  model: string | null;
  sessionMode: string | null;
  /** How it signs in; null if it needs no request for that. */
  authMethod: string | null;
  /** Limit for process, handshake and session together. */
  startTimeoutMs: number;
  idleTimeoutMs: number;
}

/** What an engine stores across restarts: small, and never secret, because tools may write to its disk. */
export type EngineMemory = Readonly<Record<string, string | number | boolean | null>>;

export interface AgentDetails {
  name: string;
  version: string;
  capabilities: {
    loadSession: boolean;
    image: boolean;
    mcpHttp: boolean;
    mcpSse: boolean;
    modelChoice: boolean;
  };
  currentModel: string | null;
  models: NonNullable<ConversationInfo['available_models']>;
}

export interface Usage {
  promptTokens: number;
  completionTokens: number;
  /** The cost; null if the price is unknown. */
  costUsd: number | null;
  costSource: CostSource;
  isStep: boolean;
}

export interface Draft {
  text: string;
  reasoning: string;
}

export interface EngineHost {
  /** Read again for each step: the user may change them during a run. */
  readonly settings: EngineSettings;
  /** The whole log, oldest first. */
  events(): readonly AgentEvent[];
  /** Masks secrets, writes the event to disk, then publishes it. Returns the event as written. */
  append(event: NewEvent): Promise<AgentEvent>;
  /** Called with each piece of an answer, which becomes the agent's next event, or with null if it is thrown away. */
  showDraft(draft: (() => Draft) | null): void;
  /** What the model wrote where the events do not show all of it. Executed and sent back to the model, never shown. */
  originals(): Originals;
  keepOriginal(original: OriginalResponse): Promise<void>;
  toolEnvironment(): Record<string, string>;
  setStatus(status: ExecutionStatus): Promise<void>;
  addUsage(usage: Usage): Promise<void>;
  /** Iterations since the last user message, and the cost of the whole conversation. */
  totals(): { iterations: number; costUsd: number };
  /** Aborts when the run should pause; already aborted if a pause is requested. */
  pauseSignal(): AbortSignal;
  memory(): EngineMemory;
  /** The members that are not given stay. */
  remember(members: EngineMemory): Promise<void>;
  describeAgent(details: AgentDetails): Promise<void>;
  /** What the repository says about a file (an absolute path), once in a conversation; null if that is nothing new. */
  rulesFor(file: string): Promise<string | null>;
}

/** Runs a conversation's agent: one instance per conversation, one run at a time. */
export abstract class AgentEngine {
  /** Runs until it finishes, pauses, waits for confirmation, reaches a limit or fails, and sets the status. */
  abstract run(host: EngineHost, signal: AbortSignal): Promise<void>;
  /**
   * Runs the waiting calls and continues as `run` does; or rejects them for a reason and stays idle, unless the agent
   * responds.
   */
  abstract confirm(host: EngineHost, rejection: string | null, signal: AbortSignal): Promise<void>;
  /** Records only the usage; may be called during a run. @throws AgentUnavailableError with a reason for the user */
  abstract ask(host: EngineHost, question: string, signal: AbortSignal): Promise<string>;
  /** However short; false if nothing was done. Changes the status only on failure. Never called during a run. */
  abstract condense(host: EngineHost, signal: AbortSignal): Promise<boolean>;
  /** Lets a conversation that cannot run be refused when it begins. @throws AgentUnavailableError */
  abstract prepare(host: EngineHost): Promise<void>;
  /** @throws AgentUnavailableError when the agent offers no choice of models, or not this model */
  abstract switchModel(host: EngineHost, model: string): Promise<void>;
  abstract close(): Promise<void>;
}

/** The agent cannot answer now; the message is for the user. */
export class AgentUnavailableError extends Error {
  override readonly name = 'AgentUnavailableError';
}

export type AgentKind = 'native' | 'acp';

export interface EngineContext {
  conversationId: string;
  kind: AgentKind;
  gitAccess: () => GitAccess | null;
}

export type CreateEngine = (context: EngineContext) => Promise<AgentEngine>;

export interface EngineServerOptions {
  /** The folder that all conversations of the sandbox work in, or below. */
  workspace: string;
  conversationsPath: string;
  /** Clients must send one of these keys; if there are none, the server is open to all. */
  sessionKeys: string[];
  webhook: Omit<WebhookOptions, 'sessionKey'> | null;
  environment: Record<string, string>;
  /** Program and arguments put before every shell, tool server and git command, for example to isolate them. */
  toolWrapper: string[];
  aliases: readonly PathAlias[];
}

export type OpaqueMembers = ProviderMetadata[string];

/** A part's data for its provider only, such as a signature, in the form in which the AI SDK takes it back. */
export type OpaqueData = ProviderMetadata;

export interface OriginalText {
  type: 'text' | 'reasoning';
  text: string;
  opaque: OpaqueData | null;
}

export interface OriginalCall {
  type: 'call';
  id: string;
  name: string;
  /** The text that the model wrote, usually JSON. */
  arguments: string;
  opaque: OpaqueData | null;
}

export type OriginalPart = OriginalText | OriginalCall;

/** A response as the model wrote it, including secrets: it is executed and sent back to the model, never shown. */
export interface OriginalResponse {
  /** The `llm_response_id` of its events. */
  id: string;
  /** The model that wrote it, with its address: nothing but text and calls is sent to another one. */
  origin: string;
  /** Members of the message that its server wants back. */
  message: OpaqueMembers;
  /** Kept in the order in which the model wrote them. */
  parts: OriginalPart[];
}

/** The originals of a conversation, by the id of the response. A response that events show completely has none. */
export type Originals = ReadonlyMap<string, OriginalResponse>;

/** Whether events show everything of it that the model may have to see again. */
export function isPlain({ message, parts }: OriginalResponse): boolean {
  return (
    Object.keys(message).length === 0 &&
    parts.every(({ type, opaque }) => type !== 'reasoning' && opaque === null)
  );
}

export function originalCall(originals: Originals, response: string, call: string): OriginalCall | null {
  const found = originals.get(response)?.parts.find((part) => part.type === 'call' && part.id === call);
  return found?.type === 'call' ? found : null;
}
