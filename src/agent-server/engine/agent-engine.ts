import type { McpServers } from '../../agent-protocol/conversation.js';
import type { AgentEvent } from '../../agent-protocol/events.js';
import type { GitAccess } from '../../agent-protocol/git.js';
import type { AgentServerOptions } from '../agent-server-options.js';

export type ExecutionStatus =
  'idle' | 'running' | 'paused' | 'waiting_for_confirmation' | 'finished' | 'error' | 'stuck';

type WithoutIdentity<E> = E extends AgentEvent ? Omit<E, 'id' | 'timestamp'> : never;

/** An event before it is in the log. */
export type NewEvent = WithoutIdentity<AgentEvent>;

export interface EngineSettings {
  llm: { model: string; apiKey: string | null; baseUrl: string | null };
  /** Silence of the model that counts as a failure. */
  llmTimeoutMs: number;
  /** Steps after a user message. */
  maxIterations: number;
  /** USD per conversation. */
  maxBudget: number | null;
  confirmationPolicy: 'never' | 'always' | 'risky';
  /** Size of the history above which it is condensed; null: never. */
  condenserTokens: number | null;
  language: string | null;
  mcpConfig: McpServers | null;
  searchApiKey: string | null;
  tavilyApiUrl: string;
  workingDir: string;
  systemPromptSuffix: string | null;
  /** USD per million tokens, by model name. */
  modelPrices: Record<string, { input: number; output: number }>;
  /** Whether a run ends when the agent repeats itself. */
  stuckDetection: boolean;
  /** Servers that may be called where a user gave the address (see `HostAllowlist`); null: any. */
  outboundAllowlist: readonly string[] | null;
}

export interface Usage {
  promptTokens: number;
  completionTokens: number;
  /** null: nobody knows the price. */
  costUsd: number | null;
  isStep: boolean;
}

/** What a conversation gives its engine. */
export interface EngineHost {
  /** Read anew at each step: the user may change them while a run goes on. */
  readonly settings: EngineSettings;
  /** The whole log, oldest first. */
  events(): readonly AgentEvent[];
  /** Written to disk, then published; secrets masked. Answers the event as it was written. */
  append(event: NewEvent): Promise<AgentEvent>;
  /** Variables for tools: an allow-listed base and the conversation's secrets. */
  toolEnvironment(): Record<string, string>;
  setStatus(status: ExecutionStatus): Promise<void>;
  /** Counts what the model cost, and one step of the agent unless it was asked beside its work. */
  addUsage(usage: Usage): Promise<void>;
  /** Iterations since the last user message; cost of the whole conversation. */
  totals(): { iterations: number; costUsd: number };
  /** Whether the run should end after the current step. */
  pauseRequested(): boolean;
}

/** Runs a conversation's agent; one instance per conversation, never two runs of it at once. */
export abstract class AgentEngine {
  /** Runs until finish, pause, a wait for confirmation, a limit or a failure, and sets the status accordingly. */
  abstract run(host: EngineHost, signal: AbortSignal): Promise<void>;
  /** Answers the calls that wait for confirmation, then goes on as `run` does. */
  abstract confirm(
    host: EngineHost,
    accept: boolean,
    reason: string | null,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Answers a question from what the agent knows by now. Writes nothing but what it cost; may be called during a run.
   *
   * @throws AgentUnavailableError with a reason for the user
   */
  abstract ask(host: EngineHost, question: string, signal: AbortSignal): Promise<string>;
  /**
   * Makes the history shorter, however short it is; the status is left alone unless that fails. Never during a run.
   *
   * @returns whether there was something to leave out
   */
  abstract condense(host: EngineHost, signal: AbortSignal): Promise<boolean>;
  /** Frees what the engine holds: tool servers, shells. */
  abstract close(): Promise<void>;
}

/** The agent cannot answer now; the message is for the user. */
export class AgentUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentUnavailableError';
  }
}

/** What an engine may know of the conversation that it is made for. */
export interface EngineContext {
  conversationId: string;
  /** What it may do on git servers, as it is when it is called. */
  gitAccess: () => GitAccess | null;
}

/** Makes the engine of a conversation when the conversation first runs. */
export type CreateEngine = (context: EngineContext) => Promise<AgentEngine>;

/** What an engine may know of its server. */
export type EngineSurroundings = Pick<
  AgentServerOptions,
  'webhook' | 'sessionKeys' | 'toolWrapper' | 'environment' | 'conversationsPath'
>;
