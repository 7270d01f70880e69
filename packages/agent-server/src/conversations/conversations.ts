import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ConversationInfo } from '@slipway/agent-protocol/conversation-api.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import type { ForkRequest, CreateConversationRequest } from '@slipway/agent-protocol/conversation-schemas.js';
import type { AgentServerOptions } from '../command-line.js';
import type { AgentEngine } from '../engine/agent-engine.js';
import { closeOpenCalls } from '../engine/agent-events.js';
import { EventLog } from '../event-log.js';
import { existing, HttpError } from '../http/http-error.js';
import { agentSpan, log } from '../observability.js';
import { resolvePath } from '../tool-view.js';
import { proxySecrets, SecretMasker } from '../secret-masker.js';
import { interruptOpenGoal } from './conversation-goal.js';
import { type ConversationRecord, forkedRecord, newRecord } from './conversation-record.js';
import { ConversationState } from './conversation-state.js';
import { type RunLimits, RunSlots } from './conversation-run.js';
import { Conversation, type ConversationCopy, isStatusChange } from './conversation.js';
import {
  type Credentials,
  credentialsOf,
  mergeCredentials,
  NO_CREDENTIALS,
  type OwnSecret,
} from './credentials.js';
import type { SkillReader } from '../skills/skill-reader.js';
import { KeptOriginals, RecordFile } from './conversation-files.js';

const RECORD_FILE = 'conversation.json';
const EVENTS_FILE = 'events.jsonl';

interface ConversationsOptions extends AgentServerOptions {
  skills: SkillReader;
  ownSecret: OwnSecret;
}

interface ConversationListener {
  added(conversation: Conversation): void;
  changed?(conversation: Conversation): void;
  removed(info: ConversationInfo): void;
}

export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #byId = new Map<string, Conversation>();
  /** What begins or ends a conversation waits for what began before with the same id: both use its folder. */
  readonly #turns = new KeyedLimit(1);
  readonly #listeners: ConversationListener[] = [];
  readonly #limits: RunLimits;
  readonly #serverSecrets: readonly string[];

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#serverSecrets = [...options.sessionKeys, ...proxySecrets(options.environment)];
    const { maxConcurrentRuns, pauseGraceMs } = options;
    this.#limits = { slots: new RunSlots(maxConcurrentRuns), pauseGraceMs };
  }

  /** Calls `added` for the conversations that exist already. */
  subscribe(listener: ConversationListener): void {
    this.#listeners.push(listener);
    this.all().forEach((conversation) => listener.added(conversation));
  }

  all(): Conversation[] {
    return [...this.#byId.values()];
  }

  find(id: string): Conversation | undefined {
    return this.#byId.get(id);
  }

  masker(secrets: readonly string[]): SecretMasker {
    const known = this.all().flatMap(({ state }) => [...state.knownSecrets]);
    return new SecretMasker([...secrets, ...this.#serverSecrets, ...known]);
  }

  /** @throws HttpError 404 */
  get(id: string): Conversation {
    return existing(this.find(id), 'Conversation not found');
  }

  /** A conversation that ran is paused, its open calls closed. One that cannot be read stays on disk and is logged. */
  async load(): Promise<void> {
    const { conversationsPath: folder } = this.#options;
    await mkdir(folder, { recursive: true });
    const names = (await readdir(folder)).filter((name) => /^[0-9a-f]{32}$/.test(name));
    await Promise.all(
      names.map(async (name) => {
        try {
          await this.#loadFrom(path.join(folder, name));
        } catch (error) {
          log('error', 'failed to load conversation', { name, error: errorMessage(error) });
        }
      }),
    );
  }

  /** Starts a conversation, or returns the one that has this id already, updated with the credentials given. */
  async start(request: CreateConversationRequest): Promise<{ conversation: Conversation; created: boolean }> {
    const id = request.conversation_id ?? randomUUID();
    return await this.#turns.run(id, async () => {
      const known = this.find(id);
      await known?.updateCredentials(credentialsOf(request));
      const conversation = known ?? (await agentSpan('create conversation', () => this.#create(id, request)));
      if (request.initial_message) {
        await conversation.begin(request.initial_message, known === undefined);
      }
      return { conversation, created: known === undefined };
    });
  }

  /** The copy is idle. @throws HttpError 404 for an unknown conversation or event, 409 when the id is taken */
  async fork(sourceId: string, request: ForkRequest): Promise<Conversation> {
    const id = request.id ?? randomUUID();
    const copy = this.get(sourceId).copy(request.from_event_id ?? null);
    return await this.#turns.run(id, async () => {
      if (this.find(id) !== undefined) {
        throw idTaken(id);
      }
      return await this.#copy(id, copy, request);
    });
  }

  /** @throws HttpError 404 */
  async remove(id: string): Promise<void> {
    await this.#turns.run(id, async () => await this.#remove(this.get(id)));
  }

  /** Ends all runs within the grace period; all state is on disk afterwards. */
  async stop(graceMs: number): Promise<void> {
    await Promise.all(this.all().map((conversation) => conversation.stop(graceMs)));
  }

  async #remove(conversation: Conversation): Promise<void> {
    this.#byId.delete(conversation.id);
    this.#listeners.forEach((listener) =>
      listener.removed({ ...conversation.info(), execution_status: 'deleting' }),
    );
    await conversation.stop(0);
    await rm(conversation.folder, { recursive: true, force: true });
  }

  async #create(id: string, request: CreateConversationRequest): Promise<Conversation> {
    const folder = path.join(this.#options.conversationsPath, id.replaceAll('-', ''));
    const workingDir = this.#folderOf(request.workspace.working_dir);
    try {
      await mkdir(workingDir, { recursive: true });
    } catch (error) {
      throw new HttpError(400, `The working directory cannot be created: ${errorCode(error)}.`);
    }
    await mkdir(folder, { recursive: true });
    const record = newRecord(id, workingDir, request);
    await recordFileIn(folder).save(record);
    const credentials = mergeCredentials(NO_CREDENTIALS, credentialsOf(request));
    const state = await this.#openState(folder, record, credentials);
    const conversation = this.#add(state, folder);
    try {
      await conversation.prepare();
      return conversation;
    } catch (error) {
      await this.#remove(conversation);
      throw error;
    }
  }

  async #copy(id: string, copy: ConversationCopy, request: ForkRequest): Promise<Conversation> {
    const folder = path.join(this.#options.conversationsPath, id.replaceAll('-', ''));
    // The folder of a conversation that could not be loaded still exists.
    await mkdir(folder).catch((error: unknown) => {
      throw errorCode(error) === 'EEXIST' ? idTaken(id) : error;
    });
    try {
      const lines = copy.events.map((event) => `${JSON.stringify(event)}\n`);
      await writeFile(path.join(folder, EVENTS_FILE), lines, { mode: 0o600, flag: 'wx' });
      const record = forkedRecord(copy.record, { ...request, id });
      await recordFileIn(folder).save(record);
      const state = await this.#openState(folder, record, copy.credentials);
      for (const original of copy.originals.values()) {
        await state.keepOriginal(original);
      }
      await closeOpenCalls(state, 'The conversation was copied before the tool returned a result.');
      await interruptOpenGoal(state);
      return this.#add(state, folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async #loadFrom(folder: string): Promise<void> {
    const stored = await recordFileIn(folder).read();
    // The folder may have been renamed since.
    const record = { ...stored, workingDir: this.#folderOf(stored.workingDir) };
    const state = await this.#openState(folder, record, NO_CREDENTIALS);
    if (record.status !== 'waiting_for_confirmation') {
      await closeOpenCalls(state, 'The tool was interrupted: the agent server ended while it ran.');
    }
    if (record.status === 'running') {
      await state.change({ wasRunning: !record.rest && !isPauseRequested(state.events()) });
      await state.setStatus(record.rest ?? 'paused');
    }
    await interruptOpenGoal(state);
    this.#add(state, folder);
  }

  #folderOf(workingDir: string): string {
    return resolvePath(this.#options.aliases, this.#options.workspace, workingDir);
  }

  async #openState(
    folder: string,
    record: ConversationRecord,
    credentials: Credentials,
  ): Promise<ConversationState> {
    return new ConversationState({
      record,
      recordFile: recordFileIn(folder),
      events: await EventLog.open(path.join(folder, EVENTS_FILE)),
      originals: await KeptOriginals.open(folder),
      credentials,
      baseEnvironment: this.#options.environment,
      serverSecrets: this.#serverSecrets,
      ownSecret: this.#options.ownSecret,
      loadSkills: async () => {
        // This module loads zod, which must not delay the start of listening.
        const { skillsOf } = await import('../skills/agent-context.js');
        return await agentSpan('read skills', () => skillsOf(record, this.#options.skills));
      },
      onChange: () => {
        const conversation = this.find(record.id);
        if (conversation) {
          this.#listeners.forEach((listener) => listener.changed?.(conversation));
        }
      },
    });
  }

  #add(state: ConversationState, folder: string): Conversation {
    const { id: conversationId, kind } = state.record;
    const context = { conversationId, kind, gitAccess: () => state.credentials.git };
    const createEngine = async (): Promise<AgentEngine> => await this.#options.createEngine(context);
    const conversation = new Conversation(folder, state, createEngine, this.#limits);
    this.#byId.set(conversation.id, conversation);
    this.#listeners.forEach((listener) => listener.added(conversation));
    return conversation;
  }
}

function idTaken(id: string): HttpError {
  return new HttpError(409, `Conversation with id ${id} already exists.`);
}

function recordFileIn(folder: string): RecordFile {
  return new RecordFile(path.join(folder, RECORD_FILE));
}

/** Whether the user had paused the run that the server's end interrupted; if so, it need not continue. */
function isPauseRequested(events: readonly AgentEvent[]): boolean {
  const last = events.findLast(
    (event) => event.kind === 'PauseEvent' || (isStatusChange(event) && event.value === 'running'),
  );
  return last?.kind === 'PauseEvent';
}
