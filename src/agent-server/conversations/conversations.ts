import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { ConversationInfo } from '../../agent-protocol/conversation.js';
import type { AgentEngine, CreateEngine } from '../engine/agent-engine.js';
import { EventLog, isAgentEvent } from '../event-log.js';
import { HttpError } from '../http/http-errors.js';
import { log, describeFailure } from '../log.js';
import { SecretMasker } from '../secret-masker.js';
import { closeOpenCalls } from './open-calls.js';
import { Conversation } from './conversation.js';
import {
  type ConversationRecord,
  newRecord,
  readRecord,
  writeRecord,
  RecordFile,
} from './conversation-record.js';
import { ConversationState } from './conversation-state.js';
import { credentialsOf, NO_CREDENTIALS, type Credentials } from './credentials.js';
import { RunPlaces } from './conversation-run.js';
import type { StartRequest } from './schemas.js';

const RECORD_FILE = 'conversation.json';
const EVENTS_FILE = 'events.jsonl';

export interface ConversationsOptions {
  /** One folder in it per conversation. */
  folder: string;
  /** Relative working folders are inside. */
  workspace: string;
  createEngine: CreateEngine;
  /** Variables that every tool gets. */
  baseEnvironment: Record<string, string>;
  /** Masked in every event. */
  serverSecrets: readonly string[];
  /** How many agents work at the same time. */
  maxConcurrentRuns: number;
}

/** Told of what happens to conversations. */
export interface ConversationWatcher {
  /** It is there now: new, or loaded. */
  added(conversation: Conversation): void;
  changed(conversation: Conversation): void;
  removed(info: ConversationInfo): void;
}

/** All conversations of this server. */
export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #byId = new Map<string, Conversation>();
  readonly #starting = new Map<string, Promise<Conversation>>();
  readonly #watchers: ConversationWatcher[] = [];
  readonly #places: RunPlaces;

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#places = new RunPlaces(options.maxConcurrentRuns);
  }

  /** Those that are there already are told at once. */
  watch(watcher: ConversationWatcher): void {
    this.#watchers.push(watcher);
    this.all().forEach((conversation) => watcher.added(conversation));
  }

  all(): Conversation[] {
    return [...this.#byId.values()];
  }

  find(id: string): Conversation | undefined {
    return this.#byId.get(id);
  }

  /** Masks what any of them, or the server, keeps secret. */
  masker(): SecretMasker {
    const known = this.all().flatMap(({ knownSecrets }) => [...knownSecrets]);
    return new SecretMasker([...this.#options.serverSecrets, ...known]);
  }

  /** @throws HttpError 404 */
  get(id: string): Conversation {
    const conversation = this.find(id);
    if (conversation === undefined) {
      throw new HttpError(404, 'Conversation not found');
    }
    return conversation;
  }

  /**
   * Reads what an earlier process left. A conversation that ran is paused, its open tool calls are closed: it goes on
   * when someone says so. One that cannot be read is left where it is and named in the log.
   */
  async load(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true });
    const names = (await readdir(folder)).filter((name) => /^[0-9a-f]{32}$/.test(name));
    await Promise.all(
      names.map(async (name) => {
        try {
          await this.#loadOne(path.join(folder, name));
        } catch (error) {
          log('error', 'a conversation could not be loaded', {
            name,
            reason: describeFailure(error).message,
          });
        }
      }),
    );
  }

  /** Begins a conversation, or answers the one that has this id; that one takes the credentials it lacks. */
  async start(
    id: string | null,
    request: StartRequest,
  ): Promise<{ conversation: Conversation; created: boolean }> {
    const chosen = id ?? randomUUID();
    const existing = this.find(chosen) ?? (await this.#starting.get(chosen));
    if (existing !== undefined) {
      await existing.updateCredentials({
        llm_api_key: request.agent.llm.api_key ?? undefined,
        search_api_key: request.slipway.search_api_key ?? undefined,
        mcp_config: request.agent.mcp_config,
        secrets: request.secrets,
        git: request.slipway.git ?? undefined,
        language: request.slipway.language,
        outbound_allowlist: request.slipway.outbound_allowlist,
      });
      return { conversation: existing, created: false };
    }
    const starting = this.#create(chosen, request);
    this.#starting.set(chosen, starting);
    try {
      return { conversation: await starting, created: true };
    } finally {
      this.#starting.delete(chosen);
    }
  }

  /** Ends a conversation and removes everything of it but the workspace. */
  async remove(id: string): Promise<void> {
    const conversation = this.get(id);
    this.#byId.delete(id);
    this.#watchers.forEach((watcher) =>
      watcher.removed({ ...conversation.info(), execution_status: 'deleting' }),
    );
    await conversation.stop(0);
    await rm(conversation.folder, { recursive: true, force: true });
  }

  /** Ends all runs within a time; everything is on the disk afterwards. */
  async stop(graceMs: number): Promise<void> {
    await Promise.all(this.all().map((conversation) => conversation.stop(graceMs)));
  }

  async #create(id: string, request: StartRequest): Promise<Conversation> {
    const folder = path.join(this.#options.folder, id.replaceAll('-', ''));
    const workingDir = path.resolve(this.#options.workspace, request.workspace.working_dir);
    try {
      await mkdir(workingDir, { recursive: true });
    } catch (error) {
      throw new HttpError(400, `The working directory cannot be made: ${describeFailure(error).code}.`);
    }
    await mkdir(folder, { recursive: true });
    const record = newRecord(id, workingDir, request);
    await writeRecord(path.join(folder, RECORD_FILE), record);
    return this.#add(await this.#open(folder, record, credentialsOf(request)), folder);
  }

  async #loadOne(folder: string): Promise<void> {
    const record = await readRecord(path.join(folder, RECORD_FILE));
    const state = await this.#open(folder, record, NO_CREDENTIALS);
    if (record.status !== 'waiting_for_confirmation') {
      await closeOpenCalls(state, 'The tool was interrupted: the agent server ended while it ran.');
    }
    if (record.status === 'running') {
      await state.change({ wasRunning: true });
      await state.setStatus('paused');
    }
    this.#add(state, folder);
  }

  async #open(
    folder: string,
    record: ConversationRecord,
    credentials: Credentials,
  ): Promise<ConversationState> {
    return new ConversationState({
      record,
      recordFile: new RecordFile(path.join(folder, RECORD_FILE)),
      events: await EventLog.open(path.join(folder, EVENTS_FILE), isAgentEvent),
      credentials,
      baseEnvironment: this.#options.baseEnvironment,
      serverSecrets: this.#options.serverSecrets,
      changed: () => {
        const conversation = this.find(record.id);
        if (conversation) {
          this.#watchers.forEach((watcher) => watcher.changed(conversation));
        }
      },
    });
  }

  #add(state: ConversationState, folder: string): Conversation {
    const context = { conversationId: state.record.id, gitAccess: () => state.credentials.git };
    const createEngine = async (): Promise<AgentEngine> => await this.#options.createEngine(context);
    const conversation = new Conversation(folder, state, createEngine, this.#places);
    this.#byId.set(conversation.id, conversation);
    this.#watchers.forEach((watcher) => watcher.added(conversation));
    return conversation;
  }
}
