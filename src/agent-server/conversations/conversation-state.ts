import type { AgentEvent, ConversationStateUpdateEvent } from '../../agent-protocol/events.js';
import type { EngineHost, EngineSettings, ExecutionStatus, NewEvent, Usage } from '../engine/agent-engine.js';
import type { EventLog } from '../event-log.js';
import { gitVariables } from '../git/run-git.js';
import { SecretMasker } from '../secret-masker.js';
import { compactEvent } from './event-routes.js';
import { toStats } from './conversation-info.js';
import type { ConversationRecord, RecordFile } from './conversation-record.js';
import { type Credentials, secretValues, lookUpSecrets } from './credentials.js';
import { toEngineSettings } from './engine-settings.js';

export interface ConversationStateOptions {
  record: ConversationRecord;
  recordFile: RecordFile;
  events: EventLog<AgentEvent>;
  credentials: Credentials;
  /** Variables that every tool gets. */
  baseEnvironment: Record<string, string>;
  /** Secrets of the server itself. */
  serverSecrets: readonly string[];
  /** Told after each change of the record. */
  changed: () => void;
}

/** What a conversation knows: its record, its log and its secrets. This is what the engine sees of it. */
export class ConversationState implements EngineHost {
  readonly log: EventLog<AgentEvent>;
  readonly #recordFile: RecordFile;
  readonly #baseEnvironment: Record<string, string>;
  readonly #changed: () => void;
  /** Values that were secret once stay so. */
  readonly #everSecret: Set<string>;
  #record: ConversationRecord;
  #credentials: Credentials;
  #lookedUp: Record<string, string> = {};
  #masker: SecretMasker;
  #pauseRequested = false;

  constructor(options: ConversationStateOptions) {
    this.log = options.events;
    this.#record = options.record;
    this.#recordFile = options.recordFile;
    this.#credentials = options.credentials;
    this.#baseEnvironment = options.baseEnvironment;
    this.#changed = options.changed;
    this.#everSecret = new Set([...options.serverSecrets, ...secretValues(options.credentials)]);
    this.#masker = new SecretMasker(this.#everSecret);
  }

  get record(): ConversationRecord {
    return this.#record;
  }

  get credentials(): Credentials {
    return this.#credentials;
  }

  get masker(): SecretMasker {
    return this.#masker;
  }

  get knownSecrets(): ReadonlySet<string> {
    return this.#everSecret;
  }

  get settings(): EngineSettings {
    return toEngineSettings(this.#record, this.#credentials);
  }

  events(): readonly AgentEvent[] {
    return this.log.entries;
  }

  async append(event: NewEvent): Promise<AgentEvent> {
    return await this.#write(this.#masker.value(event));
  }

  toolEnvironment(): Record<string, string> {
    const given = Object.entries(this.#credentials.secrets).flatMap(([name, secret]) =>
      secret.kind === 'StaticSecret' && secret.value !== null ? [[name, secret.value] as const] : [],
    );
    const { git } = this.#credentials;
    return {
      ...this.#baseEnvironment,
      ...Object.fromEntries(given),
      ...this.#lookedUp,
      ...(git && gitVariables(git.expose ? git : { credentials: [], identity: git.identity })),
    };
  }

  /** @param also written in the same moment */
  async setStatus(status: ExecutionStatus, also: Partial<ConversationRecord> = {}): Promise<void> {
    if (status !== this.#record.status) {
      await this.change({ ...also, status });
      await this.#writeUpdate('execution_status', status);
      await this.log.sync();
    }
  }

  async addUsage(usage: Usage): Promise<void> {
    const { iterations, promptTokens, completionTokens, costUsd } = this.#record.usage;
    await this.change({
      usage: {
        iterations: iterations + (usage.isStep ? 1 : 0),
        promptTokens: promptTokens + usage.promptTokens,
        completionTokens: completionTokens + usage.completionTokens,
        costUsd: costUsd + (usage.costUsd ?? 0),
      },
    });
    await this.#writeUpdate('stats', toStats(this.#record));
  }

  totals(): { iterations: number; costUsd: number } {
    const { iterations, costUsd } = this.#record.usage;
    return { iterations, costUsd };
  }

  pauseRequested(): boolean {
    return this.#pauseRequested;
  }

  requestPause(requested: boolean): void {
    this.#pauseRequested = requested;
  }

  /** Changes the record; resolves once it is on the disk. */
  async change(part: Partial<ConversationRecord>): Promise<void> {
    this.#record = { ...this.#record, ...part, updatedAt: new Date().toISOString() };
    await this.#recordFile.save(this.#record);
    this.#changed();
  }

  setCredentials(credentials: Credentials): void {
    this.#credentials = credentials;
    this.#learn(secretValues(credentials));
  }

  /** Fetches the secrets that are kept elsewhere; before each run, for they change. */
  async refreshSecrets(): Promise<void> {
    this.#lookedUp = await lookUpSecrets(this.#credentials.secrets, this.#lookedUp);
    this.#learn(Object.values(this.#lookedUp));
  }

  #learn(values: string[]): void {
    values.forEach((value) => this.#everSecret.add(value));
    this.#masker = new SecretMasker(this.#everSecret);
  }

  /** Names and numbers of ours: never masked. */
  async #writeUpdate(key: string, value: unknown): Promise<void> {
    const update: Omit<ConversationStateUpdateEvent, 'id' | 'timestamp'> = {
      kind: 'ConversationStateUpdateEvent',
      source: 'environment',
      key,
      value,
    };
    await this.#write(update);
  }

  async #write(event: NewEvent): Promise<AgentEvent> {
    return await this.log.append((identity) => compactEvent({ ...event, ...identity }));
  }
}
