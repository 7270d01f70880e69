import { COST_SOURCES, type CostSource } from '@slipway/agent-protocol/conversation-api.js';
import {
  type AgentEvent,
  type ConversationStateUpdateEvent,
  isOfAnotherAgent,
} from '@slipway/agent-protocol/events.js';
import type {
  AgentDetails,
  Draft,
  EngineHost,
  EngineMemory,
  EngineSettings,
  ExecutionStatus,
  NewEvent,
  Usage,
  OriginalResponse,
  Originals,
} from '../engine/agent-engine.js';
import { openCalls } from '../engine/agent-events.js';
import type { EventLog } from '../event-log.js';
import { gitVariables, shellCredentials } from '../git/run-git.js';
import { isSameShape, SecretMasker } from '../secret-masker.js';
import { DraftAnswer } from './draft-answer.js';
import { type ConversationRecord, toStats, branchUpTo } from './conversation-record.js';
import { type Credentials, secretValues, lookUpSecrets, type OwnSecret } from './credentials.js';
import { toEngineSettings } from './engine-settings.js';
import type { KeptOriginals, RecordFile } from './conversation-files.js';
import {
  type FoundSkills,
  mergeSkills,
  type Skill,
  type SkillProblem,
  skillProblemEvents,
  type TriggeredSkills,
  skillsForFile,
  triggeredSkills,
} from '../skills/skill.js';

export interface FoundPlugin extends FoundSkills {
  folder: string;
}

/** Members that keep their nulls: null has a meaning in arbitrary JSON, and strict clients require `command` always. */
const MEMBERS_WITH_NULLS = new Set([
  'data',
  'value',
  'meta',
  'inputSchema',
  'command',
  'raw_input',
  'raw_output',
]);

interface ConversationStateOptions {
  record: ConversationRecord;
  recordFile: RecordFile;
  events: EventLog<AgentEvent>;
  originals: KeptOriginals;
  credentials: Credentials;
  baseEnvironment: Record<string, string>;
  serverSecrets: readonly string[];
  ownSecret: OwnSecret;
  onChange: () => void;
  loadSkills: () => Promise<FoundSkills>;
}

export class ConversationState implements EngineHost {
  readonly log: EventLog<AgentEvent>;
  readonly draft = new DraftAnswer(
    (text) => this.masker.begun(text),
    () => this.log.entries.length - 1,
  );
  readonly #options: ConversationStateOptions;
  /** Every secret that the conversation was ever given: replaced ones are still masked. */
  readonly knownSecrets: Set<string>;
  record: ConversationRecord;
  credentials: Credentials;
  masker: SecretMasker;
  #lookedUp: Record<string, string> = {};
  #pause = new AbortController();
  #loadingSkills: Promise<void> | null = null;
  #skills: readonly Skill[] = [];

  constructor(options: ConversationStateOptions) {
    this.log = options.events;
    this.record = options.record;
    this.#options = options;
    this.credentials = options.credentials;
    this.knownSecrets = new Set([...options.serverSecrets, ...secretValues(options.credentials)]);
    this.masker = new SecretMasker(this.knownSecrets);
  }

  get settings(): EngineSettings {
    return toEngineSettings(this.record, this.credentials, this.#skills);
  }

  /** The history up to the event that a client last moved its end to, and everything since. */
  events(): readonly AgentEvent[] {
    const { navigations } = this.record;
    return navigations.length === 0
      ? this.log.entries
      : branchUpTo(this.log, navigations, this.log.entries.length);
  }

  async navigate(leaf: string | null): Promise<void> {
    const navigations = [...this.record.navigations, { position: this.log.entries.length, leaf }];
    await this.change({ navigations });
  }

  async append(event: NewEvent, id?: string): Promise<AgentEvent> {
    const isAnswer = event.source === 'agent' && !isOfAnotherAgent(event);
    return await this.#write(this.masker.value(event), isAnswer ? this.draft.end() : id);
  }

  showDraft(draft: (() => Draft) | null): void {
    this.draft.write(draft);
  }

  originals(): Originals {
    return this.#options.originals.all;
  }

  async keepOriginal(original: OriginalResponse): Promise<void> {
    await this.#options.originals.keep(original, this.masker);
  }

  toolEnvironment(): Record<string, string> {
    const given = Object.entries(this.credentials.secrets).flatMap(([name, secret]) =>
      secret.kind === 'StaticSecret' && secret.value !== null ? [[name, secret.value] as const] : [],
    );
    const { git } = this.credentials;
    return {
      ...this.#options.baseEnvironment,
      ...Object.fromEntries(given),
      ...this.#lookedUp,
      ...(git && gitVariables({ ...git, credentials: shellCredentials(git) })),
    };
  }

  async setStatus(status: ExecutionStatus, also: Partial<ConversationRecord> = {}): Promise<void> {
    if (status !== this.record.status) {
      this.draft.write(null);
      const waiting = status === 'waiting_for_confirmation' ? openCalls(this.events()) : [];
      await this.#options.originals.setWaiting(new Set(waiting.map((call) => call.llm_response_id)));
      try {
        await this.change({ ...also, status });
      } finally {
        // A full disk may have room for a line.
        await this.#writeUpdate('execution_status', status);
        await this.log.sync();
      }
    }
  }

  async addUsage(usage: Usage): Promise<void> {
    const { iterations, promptTokens, completionTokens, costUsd, costSource } = this.record.usage;
    const isNothing = usage.promptTokens === 0 && usage.completionTokens === 0 && usage.costUsd === 0;
    await this.change({
      usage: {
        iterations: iterations + (usage.isStep ? 1 : 0),
        promptTokens: promptTokens + usage.promptTokens,
        completionTokens: completionTokens + usage.completionTokens,
        costUsd: costUsd + (usage.costUsd ?? 0),
        costSource: isNothing ? costSource : leastCertain(costSource, usage.costSource),
      },
    });
    await this.#writeUpdate('stats', toStats(this.record));
  }

  totals(): { iterations: number; costUsd: number } {
    const { iterations, costUsd } = this.record.usage;
    return { iterations, costUsd };
  }

  pauseSignal(): AbortSignal {
    return this.#pause.signal;
  }

  requestPause(requested: boolean): void {
    if (requested) {
      this.#pause.abort();
    } else if (this.#pause.signal.aborted) {
      this.#pause = new AbortController();
    }
  }

  memory(): EngineMemory {
    return this.record.memory;
  }

  async remember(members: EngineMemory): Promise<void> {
    await this.change({ memory: { ...this.memory(), ...members } });
  }

  async describeAgent(details: AgentDetails): Promise<void> {
    await this.change({ agentDetails: this.masker.value(details) });
  }

  async change(part: Partial<ConversationRecord>): Promise<void> {
    this.record = { ...this.record, ...part, updatedAt: new Date().toISOString() };
    await this.#options.recordFile.save(this.record);
    this.#options.onChange();
  }

  /** Loads the agent's skills the first time, and reports broken ones; they stay the same until the server ends. */
  async openSkills(): Promise<void> {
    this.#loadingSkills ??= this.#readSkills().catch((error: unknown) => {
      this.#loadingSkills = null;
      throw error;
    });
    await this.#loadingSkills;
  }

  async #readSkills(): Promise<void> {
    const { skills, problems } = await this.#options.loadSkills();
    this.#skills = skills;
    await this.#tellProblems(problems);
  }

  async addPlugin({ folder, skills, problems }: FoundPlugin): Promise<void> {
    await this.openSkills();
    await this.change({ plugins: [...new Set([...(this.record.plugins ?? []), folder])] });
    this.#skills = mergeSkills(this.#skills, skills);
    await this.#tellProblems(problems);
  }

  async #tellProblems(problems: readonly SkillProblem[]): Promise<void> {
    for (const event of skillProblemEvents(problems, this.log.entries)) {
      await this.append(event);
    }
  }

  skillsFor(message: string): TriggeredSkills | null {
    return triggeredSkills(this.#skills, message, this.record.activatedSkills);
  }

  async rulesFor(file: string): Promise<string | null> {
    const { workingDir, activatedSkills } = this.record;
    const found = skillsForFile(this.#skills, workingDir, file, activatedSkills);
    if (found !== null) {
      await this.change({ activatedSkills: [...activatedSkills, ...found.names] });
    }
    return found?.text ?? null;
  }

  setCredentials(credentials: Credentials): void {
    this.credentials = credentials;
    this.#addSecrets(secretValues(credentials));
  }

  /** Fetches the secrets that are stored elsewhere; called before each run because they may change. */
  async refreshSecrets(): Promise<void> {
    this.#lookedUp = await lookUpSecrets(this.credentials.secrets, this.#lookedUp, this.#options.ownSecret);
    this.#addSecrets(Object.values(this.#lookedUp));
  }

  #addSecrets(values: string[]): void {
    values.forEach((value) => this.knownSecrets.add(value));
    this.masker = new SecretMasker(this.knownSecrets);
  }

  /** Writes our own names and numbers, which are never masked. */
  async #writeUpdate(key: string, value: unknown): Promise<void> {
    const update: Omit<ConversationStateUpdateEvent, 'id' | 'timestamp'> = {
      kind: 'ConversationStateUpdateEvent',
      source: 'environment',
      key,
      value,
    };
    await this.#write(update);
  }

  async #write(event: NewEvent, id?: string): Promise<AgentEvent> {
    return await this.log.append((identity) =>
      compactEvent({ ...event, ...identity, ...(id !== undefined && { id }) }),
    );
  }
}

/** Clients expect events without null members. */
function compactEvent<T extends object>(event: T): T {
  const compact = withoutNulls(event);
  return isSameShape(compact, event) ? compact : event;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => withoutNulls(item));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => {
      if (MEMBERS_WITH_NULLS.has(key)) {
        return [[key, member]];
      }
      return member === null || member === undefined ? [] : [[key, withoutNulls(member)]];
    }),
  );
}

/** They stand in the order of their certainty. */
function leastCertain(one: CostSource | undefined, other: CostSource): CostSource {
  return COST_SOURCES.findLast((source) => source === one || source === other) ?? other;
}
