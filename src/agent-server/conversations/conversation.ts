import type { ConversationInfo } from '../../agent-protocol/conversation.js';
import { conversationTitle } from '../../agent-protocol/conversation-title.js';
import type { AgentEvent } from '../../agent-protocol/events.js';
import type { AgentEngine, ExecutionStatus } from '../engine/agent-engine.js';
import type { EventLog } from '../event-log.js';
import { HttpError } from '../http/http-errors.js';
import { toConversationInfo } from './conversation-info.js';
import { type ConversationRecord, recordChanges } from './conversation-record.js';
import { ConversationRun, type RunPlaces } from './conversation-run.js';
import type { ConversationState } from './conversation-state.js';
import { updateCredentials, KEY_WITHHELD, missingKeyDetail } from './credentials.js';
import type { IncomingMessage, CredentialsUpdate } from './schemas.js';
import { openCalls } from './open-calls.js';

const ENDED: ReadonlySet<ExecutionStatus> = new Set(['finished', 'error', 'stuck']);

/** One conversation: what clients may do with it. */
export class Conversation {
  readonly folder: string;
  readonly #state: ConversationState;
  readonly #run: ConversationRun;

  constructor(
    folder: string,
    state: ConversationState,
    createEngine: () => Promise<AgentEngine>,
    places: RunPlaces,
  ) {
    this.folder = folder;
    this.#state = state;
    this.#run = new ConversationRun(state, createEngine, places);
  }

  get id(): string {
    return this.record.id;
  }

  get record(): ConversationRecord {
    return this.#state.record;
  }

  get log(): EventLog<AgentEvent> {
    return this.#state.log;
  }

  /** Whether the agent works at this moment. */
  get isRunning(): boolean {
    return this.#run.isActive;
  }

  info(): ConversationInfo {
    return toConversationInfo(this.record, this.folder);
  }

  /** Every secret that it was ever given. */
  get knownSecrets(): ReadonlySet<string> {
    return this.#state.knownSecrets;
  }

  /**
   * Adds the user's message; with `run` the agent takes it up, now or, when it works already, with its next step.
   *
   * @throws HttpError 400 when the agent shall run and cannot
   */
  async addMessage(message: IncomingMessage): Promise<void> {
    await this.#run.settle();
    if (message.run) {
      this.#requireCredentials();
      await this.#rejectOpenCalls();
    }
    const { status } = this.record;
    await this.#state.append({
      kind: 'MessageEvent',
      source: 'user',
      llm_message: { role: message.role, content: message.content },
      activated_skills: [],
      extended_content: [],
    });
    await this.#state.change({ usage: { ...this.record.usage, iterations: 0 } });
    await this.log.sync();
    if (ENDED.has(status) && !this.isRunning) {
      await this.#state.setStatus('idle');
    }
    if (message.run) {
      await this.#run.startOrContinue();
    }
  }

  /**
   * Lets the agent work. With calls that wait for confirmation it accepts them: that is how SDK clients do it.
   *
   * @throws HttpError 409 when it works already, 400 when there is nothing to work on or a key is missing
   */
  async run(): Promise<void> {
    await this.#run.settle();
    if (this.isRunning) {
      throw new HttpError(409, 'Conversation already running. Wait for completion or pause first.');
    }
    this.#requireCredentials();
    if (this.record.status === 'waiting_for_confirmation') {
      await this.#run.confirm(true, null);
      return;
    }
    if (!this.log.entries.some(({ kind, source }) => kind === 'MessageEvent' && source === 'user')) {
      throw new HttpError(400, 'The conversation has no message yet: there is nothing to work on.');
    }
    if (this.record.status !== 'finished') {
      await this.#run.start();
    }
  }

  /** Ends the run after its current step; asked a second time, at once. */
  async pause(): Promise<void> {
    await this.#run.settle();
    await this.#run.pause(this.#state.pauseRequested());
  }

  /** Ends the run at once. */
  async interrupt(): Promise<void> {
    await this.#run.settle();
    await this.#run.pause(true);
  }

  /** @throws HttpError 409 when nothing waits for confirmation */
  async respond(accept: boolean, reason: string | null): Promise<void> {
    await this.#run.settle();
    if (this.isRunning || this.record.status !== 'waiting_for_confirmation') {
      throw new HttpError(409, 'No action waits for confirmation.');
    }
    this.#requireCredentials();
    await this.#run.confirm(accept, reason);
  }

  /** Asks the agent something that does not get into the log, whether it works or not. */
  async ask(question: string): Promise<string> {
    this.#requireCredentials();
    return this.#state.masker.text(await this.#run.ask(question));
  }

  /**
   * Has the model summarise the oldest part of the history now.
   *
   * @returns whether there was something to leave out
   * @throws HttpError 409 while the agent works or waits for an answer
   */
  async condense(): Promise<boolean> {
    await this.#run.settle();
    if (this.record.status === 'waiting_for_confirmation') {
      throw new HttpError(409, 'An action waits for confirmation: answer that first.');
    }
    this.#requireCredentials();
    return await this.#run.condense();
  }

  async setTitle(title: string): Promise<void> {
    await this.#state.change({ title });
  }

  /** A title made of the first message. */
  suggestTitle(maxLength: number): string {
    return conversationTitle(this.log.entries, maxLength) ?? 'New conversation';
  }

  async setConfirmationPolicy(policy: ConversationRecord['confirmationPolicy']): Promise<void> {
    await this.#state.change({ confirmationPolicy: policy });
  }

  async setSecurityAnalyzer(analyzer: ConversationRecord['securityAnalyzer']): Promise<void> {
    await this.#state.change({ securityAnalyzer: analyzer });
  }

  /** Replaces what is given; nothing secret of it is written. A run that goes on has it with its next step. */
  async updateCredentials(update: CredentialsUpdate): Promise<void> {
    this.#state.setCredentials(updateCredentials(this.#state.credentials, update));
    await this.#state.change(recordChanges(this.record, update));
    await this.#tellWithheldKey();
  }

  /** Ends the run within a time, remembers that there was one, and lets go of files and processes. */
  async stop(graceMs: number): Promise<void> {
    await this.#run.stop(graceMs);
    await this.log.close();
  }

  get #lacksKey(): boolean {
    return this.record.llmKeyNeeded && this.#state.credentials.llmApiKey === null;
  }

  #requireCredentials(): void {
    if (this.#lacksKey) {
      throw new HttpError(400, missingKeyDetail(this.record, this.#state.credentials.llmKeyWithheld));
    }
  }

  /** Whoever waits for interrupted work to go on asks for nothing that could be refused with the reason. */
  async #tellWithheldKey(): Promise<void> {
    const last = this.log.entries.at(-1);
    const isTold = last?.kind === 'ConversationErrorEvent' && last.code === KEY_WITHHELD;
    if (this.record.wasRunning && this.#lacksKey && this.#state.credentials.llmKeyWithheld && !isTold) {
      await this.#state.append({
        kind: 'ConversationErrorEvent',
        source: 'environment',
        code: KEY_WITHHELD,
        detail: missingKeyDetail(this.record, true),
      });
      await this.log.sync();
    }
  }

  /** A message in place of an answer is a no: nothing runs unasked. */
  async #rejectOpenCalls(): Promise<void> {
    if (this.isRunning || this.record.status !== 'waiting_for_confirmation') {
      return;
    }
    for (const call of openCalls(this.log.entries)) {
      await this.#state.append({
        kind: 'UserRejectObservation',
        source: 'environment',
        tool_name: call.tool_name,
        tool_call_id: call.tool_call_id,
        rejection_reason: 'The user wrote a message instead of confirming the action.',
        rejection_source: 'user',
        action_id: call.id,
      });
    }
    await this.#state.setStatus('idle');
  }
}
