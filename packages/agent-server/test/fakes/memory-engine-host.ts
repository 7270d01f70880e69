import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { AgentEvent, Content } from '@slipway/agent-protocol/events.js';
import type {
  AgentDetails,
  Draft,
  EngineHost,
  EngineMemory,
  EngineSettings,
  ExecutionStatus,
  NewEvent,
  OriginalResponse,
  Usage,
} from '../../src/engine/agent-engine.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { messageEvent } from '../../../../test/fakes/sample-events.js';

/** A conversation in memory, as an engine sees it. */
export class MemoryEngineHost implements EngineHost {
  settings: EngineSettings;
  readonly log: AgentEvent[] = [];
  readonly statuses: ExecutionStatus[] = [];
  readonly usage: Usage[] = [];
  readonly kept = new Map<string, OriginalResponse>();
  /** Secrets of the conversation. */
  secrets: Record<string, string> = {};
  private pausing = new AbortController();
  engineMemory: EngineMemory = {};
  details: AgentDetails | null = null;
  /** What was written of answers, before and behind each event; null stands for one that was thrown away. */
  readonly drafts: (Draft | null)[] = [];
  /** Called with each event that is appended. */
  onAppend: (event: AgentEvent) => void = () => undefined;
  private iterations = 0;

  constructor(settings: EngineSettings) {
    this.settings = settings;
  }

  get status(): ExecutionStatus {
    return this.statuses.at(-1) ?? 'idle';
  }

  events(): readonly AgentEvent[] {
    return this.log;
  }

  async append(event: NewEvent): Promise<AgentEvent> {
    const appended = { ...event, id: randomUUID(), timestamp: new Date().toISOString().slice(0, -1) };
    this.log.push(appended);
    this.onAppend(appended);
    return appended;
  }

  showDraft(draft: (() => Draft) | null): void {
    const { text, reasoning } = draft?.() ?? {};
    this.drafts.push(draft && { text: text ?? '', reasoning: reasoning ?? '' });
  }

  originals(): ReadonlyMap<string, OriginalResponse> {
    return this.kept;
  }

  async keepOriginal(original: OriginalResponse): Promise<void> {
    this.kept.set(original.id, original);
  }

  toolEnvironment(): Record<string, string> {
    return { ...toolEnvironment(process.env), ...this.secrets };
  }

  async setStatus(status: ExecutionStatus): Promise<void> {
    this.statuses.push(status);
  }

  async addUsage(usage: Usage): Promise<void> {
    this.usage.push(usage);
    this.iterations += usage.isStep ? 1 : 0;
  }

  totals(): { iterations: number; costUsd: number } {
    return {
      iterations: this.iterations,
      costUsd: this.usage.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0),
    };
  }

  pauseSignal(): AbortSignal {
    return this.pausing.signal;
  }

  set pause(requested: boolean) {
    if (requested) {
      this.pausing.abort();
    } else {
      this.pausing = new AbortController();
    }
  }

  get pause(): boolean {
    return this.pausing.signal.aborted;
  }

  memory(): EngineMemory {
    return this.engineMemory;
  }

  async remember(members: EngineMemory): Promise<void> {
    this.engineMemory = { ...this.engineMemory, ...members };
  }

  async rulesFor(): Promise<null> {
    return null;
  }

  async describeAgent(details: AgentDetails): Promise<void> {
    this.details = details;
  }

  /** Appends a message of the user; the count of steps starts over. */
  async say(said: string | Content[]): Promise<void> {
    this.iterations = 0;
    const content = typeof said === 'string' ? [{ type: 'text' as const, text: said }] : said;
    await this.append({ ...messageEvent('', 'user', ''), llm_message: { role: 'user', content } });
  }

  /** Events of one kind, oldest first. */
  ofKind<K extends AgentEvent['kind']>(kind: K): Extract<AgentEvent, { kind: K }>[] {
    return this.log.filter((event): event is Extract<AgentEvent, { kind: K }> => event.kind === kind);
  }
}

/** For deadlines that no test awaits: longer than any may take, however slow the machine is. */
export const NEVER_MS = 600_000;

/** `acp-agents/scripted-agent.mjs`, as settings start it. */
export const SCRIPTED_AGENT = [
  process.execPath,
  path.resolve('packages/agent-server/test/fakes/acp-agents/scripted-agent.mjs'),
];

export function scriptedAgent(
  home: string,
  changes: Partial<NonNullable<EngineSettings['acp']>> = {},
): NonNullable<EngineSettings['acp']> {
  const choices = { model: null, sessionMode: null, authMethod: null };
  const times = { startTimeoutMs: NEVER_MS, idleTimeoutMs: NEVER_MS };
  return { command: SCRIPTED_AGENT, environment: { HOME: home }, ...choices, ...times, ...changes };
}

/** Minimal settings of a conversation that works in a folder with a model at an address. */
export function engineSettings(
  workingDir: string,
  baseUrl: string,
  changes: Partial<EngineSettings> = {},
): EngineSettings {
  return {
    llm: { model: 'openai/scripted', apiKey: 'key-of-the-model', baseUrl },
    llmTimeoutMs: NEVER_MS,
    maxIterations: 50,
    maxBudget: null,
    confirmationPolicy: 'never',
    condenserTokens: null,
    language: null,
    mcpConfig: null,
    searchApiKey: null,
    tavilyApiUrl: 'http://127.0.0.1:9',
    workingDir,
    systemPromptSuffix: null,
    modelPrices: {},
    stuckDetection: true,
    outboundAllowlist: null,
    acp: null,
    resultSchema: null,
    ...changes,
  };
}
