import {
  type ConversationFailure,
  type ConversationInfo,
  hasFailed,
} from '@slipway/agent-protocol/conversation-api.js';
import {
  contentText,
  isUserMessage,
  type AgentEvent,
  type ConversationStateUpdateEvent,
  type TextContent,
} from '@slipway/agent-protocol/events.js';
import { jsonText } from '@slipway/common/json-access.js';
import type { CredentialsUpdate, IncomingMessage } from '@slipway/agent-protocol/conversation-schemas.js';
import {
  type AgentEngine,
  AgentUnavailableError,
  type ExecutionStatus,
  type Originals,
} from '../engine/agent-engine.js';
import { rejectOpenCalls } from '../engine/agent-events.js';
import { conversationFailure } from '../engine/limits.js';
import type { EventLog } from '../event-log.js';
import { HttpError } from '../http/http-error.js';
import { ConversationGoal } from './conversation-goal.js';
import {
  type ConversationRecord,
  recordUpdate,
  toConversationInfo,
  branchTo,
} from './conversation-record.js';
import { ConversationRun, type RunLimits } from './conversation-run.js';
import type { ConversationState } from './conversation-state.js';
import { type Credentials, KEY_WITHHELD, mergeCredentials, missingCredentials } from './credentials.js';

const MAX_NAVIGATIONS = 1_000;
const FINAL_STATUSES: ReadonlySet<ExecutionStatus> = new Set(['finished', 'error', 'stuck']);

export interface ConversationCopy {
  record: ConversationRecord;
  credentials: Credentials;
  events: AgentEvent[];
  originals: Originals;
}

export class Conversation {
  readonly goal: ConversationGoal;
  readonly #run: ConversationRun;
  #ranWithoutWork: () => void = () => undefined;

  constructor(
    readonly folder: string,
    readonly state: ConversationState,
    createEngine: () => Promise<AgentEngine>,
    limits: RunLimits,
  ) {
    this.#run = new ConversationRun(state, createEngine, limits, () => void this.goal.afterRun());
    this.goal = new ConversationGoal({
      state,
      run: this.#run,
      requireCredentials: () => this.#requireCredentials(),
      send: async (words, isWanted) =>
        await this.#addMessage(
          { role: 'user', content: [{ type: 'text', text: words }], run: true },
          isWanted,
        ),
    });
  }

  get id(): string {
    return this.record.id;
  }

  get record(): ConversationRecord {
    return this.state.record;
  }

  get log(): EventLog<AgentEvent> {
    return this.state.log;
  }

  /** Whether clients get answers as they are written without asking for that; those of other agents always, as elsewhere. */
  get streamsAnswers(): boolean {
    return this.record.kind === 'acp' || this.state.credentials.llmParameters.stream === true;
  }

  get isRunning(): boolean {
    return this.#run.isActive;
  }

  /** Whether the agent is running, or will be if its goal is not met. */
  get isBusy(): boolean {
    return this.isRunning || this.goal.isJudging;
  }

  info(): ConversationInfo {
    const failure = this.failure;
    return { ...toConversationInfo(this.record, this.folder), ...(failure && { error: failure }) };
  }

  /** Why the agent gave up; null if it did not, or if its log does not say why. */
  get failure(): ConversationFailure | null {
    const last = hasFailed(this.record.status)
      ? this.log.entries.findLast((event) => event.kind === 'ConversationErrorEvent')
      : undefined;
    return last ? { code: last.code, detail: last.detail } : null;
  }

  /** Takes the message of a request to start, which clients repeat: an earlier one may have come only so far. */
  async begin(message: IncomingMessage, isNew: boolean): Promise<void> {
    const { entries } = this.log;
    if (isNew || !entries.some(isUserMessage)) {
      await this.addMessage({ ...message, run: true });
    } else if (!this.isRunning && !entries.some(isStatusChange)) {
      await this.run();
    }
  }

  /**
   * Interrupts a goal. With `run`, the agent starts, or reads the message at its next step.
   * @throws HttpError 400 when the agent should run but cannot
   */
  async addMessage(message: IncomingMessage): Promise<void> {
    if (message.id !== undefined && this.log.get(message.id) !== undefined) {
      return;
    }
    await this.goal.interrupt();
    await this.#addMessage(message, () => true);
  }

  async #addMessage(message: IncomingMessage, mayRun: () => boolean): Promise<void> {
    await this.#run.settle();
    if (message.run) {
      this.#requireCredentials();
      await this.#rejectOpenCalls();
    }
    await this.state.openSkills();
    const { status } = this.record;
    const triggered = this.state.skillsFor(contentText(message.content));
    const names = triggered?.names ?? [];
    const { sender_conversation_id: sender } = message;
    const event = {
      kind: 'MessageEvent' as const,
      source: sender === undefined ? ('user' as const) : ('agent' as const),
      ...(sender !== undefined && { sender_conversation_id: sender }),
      llm_message: { role: message.role, content: message.content },
      activated_skills: names,
      extended_content: additionsTo(this.record, triggered?.text ?? null),
    };
    await this.state.append(event, message.id);
    await this.state.change({
      usage: { ...this.record.usage, iterations: 0 },
      activatedSkills: [...this.record.activatedSkills, ...names],
    });
    await this.log.sync();
    if (message.run && mayRun()) {
      // A status of idle in between would be shown to the sender and taken for the end.
      await this.#run.startOrContinue();
    } else if (FINAL_STATUSES.has(status) && !this.isRunning) {
      await this.state.setStatus('idle');
    }
  }

  /**
   * Starts the agent. Accepts calls that wait for confirmation: SDK clients confirm this way.
   * @throws HttpError 409 when it is running already, 400 when there is nothing to work on or a key is missing
   */
  async run(): Promise<void> {
    await this.#run.settle();
    if (this.isRunning) {
      throw new HttpError(409, 'Conversation already running. Wait for completion or pause first.');
    }
    this.#requireCredentials();
    if (this.record.status === 'waiting_for_confirmation') {
      await this.#run.confirm(null);
      return;
    }
    if (!this.state.events().some(isUserMessage)) {
      throw new HttpError(400, 'The conversation has no message yet: there is nothing to work on.');
    }
    if (this.record.status === 'finished') {
      this.#ranWithoutWork();
    } else {
      await this.#run.start();
    }
  }

  /** Calls back when a run was asked for and there was nothing left to do. */
  onRunWithoutWork(listener: () => void): void {
    this.#ranWithoutWork = listener;
  }

  /** A running tool gets its grace period, unless it is to end `immediately`, as with a second request. */
  async pause(immediately: boolean): Promise<void> {
    await this.goal.interrupt();
    await this.#run.settle();
    await this.#run.pause(immediately || this.state.pauseSignal().aborted);
  }

  /** Confirms the calls that wait, or rejects them for a reason. @throws HttpError 409 when none waits */
  async respond(rejection: string | null): Promise<void> {
    await this.#run.settle();
    if (this.isRunning || this.record.status !== 'waiting_for_confirmation') {
      throw new HttpError(409, 'No action waits for confirmation.');
    }
    this.#requireCredentials();
    await this.#run.confirm(rejection);
  }

  /** Moves the agent to an event, or before the first (null). @throws HttpError 409 while it runs, 404, 501 */
  async navigate(eventId: string | null): Promise<void> {
    await this.#run.settle();
    this.#requireOwnHistory();
    if (this.isRunning) {
      throw new HttpError(409, 'The agent is running: pause the conversation first.');
    }
    if (eventId !== null && this.log.get(eventId) === undefined) {
      throw new HttpError(404, 'Unknown event_id: the conversation has no such event.');
    }
    if (this.record.navigations.length >= MAX_NAVIGATIONS) {
      throw new HttpError(
        409,
        `The history can be moved at most ${MAX_NAVIGATIONS} times: fork the conversation to go on.`,
      );
    }
    await this.state.navigate(eventId);
    // The calls that waited, or the end of the work, may no longer be in the history.
    await this.state.setStatus(this.record.status === 'paused' ? 'paused' : 'idle');
  }

  /** The history up to and including an event, or all of it. @throws HttpError 404 for an unknown event */
  copy(eventId: string | null): ConversationCopy {
    this.#requireOwnHistory();
    const { navigations } = this.record;
    const events = eventId === null ? this.state.events() : branchTo(this.log, navigations, eventId);
    if (events === null) {
      throw new HttpError(404, 'Unknown from_event_id: the conversation has no such event.');
    }
    const { credentials } = this.state;
    return { record: this.record, credentials, events: [...events], originals: this.state.originals() };
  }

  async ask(question: string): Promise<string> {
    this.#requireCredentials();
    return this.state.masker.text(await this.#run.ask(question));
  }

  /** Starts an agent that is not our own. @throws HttpError 400 with the reason when it cannot be started */
  async prepare(): Promise<void> {
    if (this.record.kind === 'acp') {
      await this.#refuseUnavailable(this.#run.prepare());
    }
  }

  /** @throws HttpError 400 when the agent offers no choice of models, or not this model */
  async switchAcpModel(model: string): Promise<void> {
    if (this.record.kind !== 'acp') {
      throw new HttpError(400, 'The agent of this conversation is our own: its model is a setting.');
    }
    this.#requireCredentials();
    await this.#refuseUnavailable(this.#run.switchModel(model));
  }

  /** False if there was nothing to summarise. @throws HttpError 409 while the agent runs or waits for an answer */
  async condense(): Promise<boolean> {
    await this.#run.settle();
    if (this.record.status === 'waiting_for_confirmation') {
      throw new HttpError(409, 'An action waits for confirmation: answer that first.');
    }
    this.#requireCredentials();
    return await this.#run.condense();
  }

  /** Replaces the given members, in memory only. An active run uses the new ones from its next step on. */
  async updateCredentials(update: CredentialsUpdate): Promise<void> {
    this.state.setCredentials(mergeCredentials(this.state.credentials, update));
    await this.state.change(recordUpdate(this.record, update));
    await this.#reportWithheldKey();
  }

  async stop(graceMs: number): Promise<void> {
    this.goal.close();
    await this.#run.stop(graceMs);
    await this.log.close();
  }

  #requireCredentials(): void {
    const missing = missingCredentials(this.record, this.state.credentials);
    if (missing !== null) {
      throw new HttpError(400, missing);
    }
  }

  async #refuseUnavailable(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (error instanceof AgentUnavailableError) {
        throw new HttpError(400, this.state.masker.text(error.message));
      }
      throw error;
    }
  }

  /** Agents that are not our own keep the history themselves, so it cannot be changed here. */
  #requireOwnHistory(): void {
    if (this.record.kind !== 'native') {
      throw new HttpError(501, 'This agent keeps its history itself: start another conversation instead.');
    }
  }

  /** Clients that wait for interrupted work to resume send no request that could be refused. */
  async #reportWithheldKey(): Promise<void> {
    const last = this.log.entries.at(-1);
    const isReported = last?.kind === 'ConversationErrorEvent' && last.code === KEY_WITHHELD;
    const { credentials } = this.state;
    const detail = credentials.llmKeyWithheld ? missingCredentials(this.record, credentials) : null;
    if (this.record.wasRunning && detail !== null && !isReported) {
      await this.state.append(conversationFailure(KEY_WITHHELD, detail));
      await this.log.sync();
    }
  }

  /** A message instead of a confirmation counts as a rejection: nothing runs without consent. */
  async #rejectOpenCalls(): Promise<void> {
    if (this.isRunning || this.record.status !== 'waiting_for_confirmation') {
      return;
    }
    await rejectOpenCalls(this.state, 'The user wrote a message instead of confirming the action.');
    await this.state.setStatus('idle');
  }
}

export function isStatusChange(event: AgentEvent): event is ConversationStateUpdateEvent {
  return event.kind === 'ConversationStateUpdateEvent' && event.key === 'execution_status';
}

/** What the model reads after a message: the skills that it triggers, and the client's suffix for every message. */
function additionsTo({ agent }: ConversationRecord, skills: string | null): TextContent[] {
  const suffix = jsonText(agent, 'agent_context', 'user_message_suffix')?.trim();
  return [skills, suffix].flatMap((text) => (text ? [{ type: 'text' as const, text }] : []));
}
