import type { LanguageModel } from 'ai';
import type { ActionEvent } from '../../../agent-protocol/events.js';
import type { Tool } from '../../tools/tool.js';
import { openCalls } from '../../conversations/open-calls.js';
import type { EngineHost, EngineSettings } from '../agent-engine.js';
import { actionOf, messageOf, withUniqueIds } from './answer-events.js';
import { condense } from './condense.js';
import { waitsForUser } from './confirmation.js';
import type { ContextSize } from './context-size.js';
import { conversationFailure } from './conversation-failure.js';
import { languageModel } from './language-model.js';
import { limitReached } from './limits.js';
import { LlmFailure } from './llm-failure.js';
import { messagesFromEvents } from './messages-from-events.js';
import type { StepAnswer } from './model-step.js';
import type { NativeTools } from './native-tools.js';
import { patientStep, type Wait } from './patient-step.js';
import { callError, type PendingCall, runCalls } from './run-calls.js';
import { isStuck } from './stuck.js';
import { dynamicContext, systemPrompt } from './system-prompt.js';
import { offeredTool, readCall } from './tool-calls.js';
import { countUsage } from './count-usage.js';

export interface AgentLoopOptions {
  host: EngineHost;
  signal: AbortSignal;
  tools: NativeTools;
  size: ContextSize;
  wait: Wait;
}

type Calls = { pending: PendingCall[]; wait: boolean };

/** One run: asks the model, does what it says, and so on, until something ends it. */
export class AgentLoop {
  readonly #host: EngineHost;
  readonly #signal: AbortSignal;
  readonly #tools: NativeTools;
  readonly #size: ContextSize;
  readonly #wait: Wait;

  constructor({ host, signal, tools, size, wait }: AgentLoopOptions) {
    this.#host = host;
    this.#signal = signal;
    this.#tools = tools;
    this.#size = size;
    this.#wait = wait;
  }

  async closeOpenCalls(): Promise<void> {
    for (const call of openCalls(this.#host.events())) {
      await this.#host.append(callError(call, 'Not run, or interrupted: it has no result.'));
    }
  }

  async rejectOpenCalls(reason: string): Promise<void> {
    for (const { id, tool_name, tool_call_id } of openCalls(this.#host.events())) {
      await this.#host.append({
        kind: 'UserRejectObservation',
        source: 'environment',
        tool_name,
        tool_call_id,
        rejection_reason: reason,
        rejection_source: 'user',
        action_id: id,
      });
    }
  }

  /** Runs the calls that waited, then goes on. */
  async runOpenCalls(): Promise<void> {
    await this.#guard(async () => {
      const seen = this.#host.events().length;
      const waiting = openCalls(this.#host.events());
      await this.#prepare();
      const { pending } = await this.#read(waiting, this.#tools.offered(this.#host.settings));
      const finished = await runCalls(this.#host, pending, this.#signal);
      if (!finished || !(await this.#finish(seen))) {
        await this.#repeat();
      }
    });
  }

  /** Ends with a status that says why. */
  async work(): Promise<void> {
    await this.#guard(async () => {
      await this.#prepare();
      await this.#repeat();
    });
  }

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#signal.aborted) {
        await this.#host.setStatus('paused');
      } else if (error instanceof LlmFailure) {
        await this.#fail(error.code, error.message);
      } else {
        throw error;
      }
    }
  }

  async #repeat(): Promise<void> {
    while (!(await this.#isOver()) && (await this.#step())) {
      // Each step is one answer of the model and what it asked for.
    }
  }

  /** Tool servers, and the system prompt if the conversation has none yet. */
  async #prepare(): Promise<void> {
    for (const { server, reason } of await this.#tools.connect()) {
      const detail = `The tool server ${server} cannot be used: ${reason}`;
      await this.#host.append(conversationFailure('McpServerUnavailable', detail));
    }
    const { settings } = this.#host;
    if (!this.#host.events().some(({ kind }) => kind === 'SystemPromptEvent')) {
      await this.#host.append({
        kind: 'SystemPromptEvent',
        source: 'agent',
        system_prompt: { type: 'text', text: systemPrompt() },
        dynamic_context: { type: 'text', text: dynamicContext(settings) },
        tools: [...this.#tools.offered(settings).values()].map((tool) => tool.definition()),
      });
    }
  }

  async #isOver(): Promise<boolean> {
    const host = this.#host;
    if (this.#signal.aborted || host.pauseRequested()) {
      await host.setStatus('paused');
      return true;
    }
    const limit = limitReached(host.settings, host.totals());
    if (limit !== null) {
      await this.#fail(limit.code, limit.detail);
      return true;
    }
    if (isStuck(host.events())) {
      await host.setStatus('stuck');
      return true;
    }
    return false;
  }

  /** @returns whether the run goes on */
  async #step(): Promise<boolean> {
    const { settings } = this.#host;
    const { llm, llmTimeoutMs, confirmationPolicy } = settings;
    const model = languageModel({ ...llm, timeoutMs: llmTimeoutMs });
    const tools = this.#tools.offered(settings);
    const offered = [...tools.values()].map((tool) => offeredTool(tool, confirmationPolicy === 'risky'));
    const seen = this.#host.events().length;
    const { instructions, messages } = messagesFromEvents(this.#host.events());
    const fixed = { instructions, offered };
    if (await this.#condensed(model, settings, this.#size.tokens(fixed, messages))) {
      return true;
    }
    const request = {
      model,
      instructions: instructions ?? '',
      messages,
      tools: offered,
      signal: this.#signal,
    };
    const answer = withUniqueIds(await patientStep(request, this.#wait), takenIds(this.#host));
    if (answer.promptTokens !== null) {
      this.#size.observe(answer.promptTokens, messages.length);
    }
    return await this.#take(answer, tools, seen, request);
  }

  /** Makes room when the history has grown too large. */
  async #condensed(model: LanguageModel, settings: EngineSettings, tokens: number): Promise<boolean> {
    const { condenserTokens } = settings;
    if (condenserTokens === null || tokens <= condenserTokens) {
      return false;
    }
    const condensed = await condense(this.#host.events(), {
      model,
      limitTokens: condenserTokens,
      signal: this.#signal,
      wait: this.#wait,
    });
    if (condensed === null) {
      return false;
    }
    await this.#host.append(condensed.event);
    await countUsage(this.#host, settings, condensed.answer);
    this.#size.forget();
    return true;
  }

  async #take(
    answer: StepAnswer,
    tools: ReadonlyMap<string, Tool>,
    seen: number,
    request: unknown,
  ): Promise<boolean> {
    const { settings } = this.#host;
    if (answer.calls.length === 0) {
      await this.#host.append(messageOf(answer));
      await countUsage(this.#host, settings, answer, request);
      return !(await this.#finish(seen));
    }
    const actions: ActionEvent[] = [];
    for (const [index, call] of answer.calls.entries()) {
      const read = readCall(tools, call.name, call.arguments);
      const action = read.understood ? read.prepared.action : null;
      const event = await this.#host.append(actionOf(answer, call, index === 0, { action, risk: read.risk }));
      if (event.kind === 'ActionEvent') {
        actions.push(event);
      }
    }
    await countUsage(this.#host, settings, answer, request);
    const { pending, wait } = await this.#read(actions, tools);
    if (wait) {
      await this.#host.setStatus('waiting_for_confirmation');
      return false;
    }
    const finished = await runCalls(this.#host, pending, this.#signal);
    return !finished || !(await this.#finish(seen));
  }

  /** Closes the calls that cannot be understood; when one of the others waits for the user, all of them do. */
  async #read(actions: readonly ActionEvent[], tools: ReadonlyMap<string, Tool>): Promise<Calls> {
    const { confirmationPolicy } = this.#host.settings;
    const calls: Calls = { pending: [], wait: false };
    for (const event of actions) {
      const read = readCall(tools, event.tool_name, event.tool_call.arguments);
      if (read.understood) {
        calls.pending.push({ event, prepared: read.prepared });
        calls.wait ||= waitsForUser(confirmationPolicy, read.tool.needsConfirmation, read.risk);
      } else {
        await this.#host.append(callError(event, read.error));
      }
    }
    return calls;
  }

  /** @returns false when the user wrote meanwhile: then there is more to do */
  async #finish(seen: number): Promise<boolean> {
    const written = this.#host.events().slice(seen);
    if (written.some(({ kind, source }) => kind === 'MessageEvent' && source === 'user')) {
      return false;
    }
    await this.#host.setStatus('finished');
    return true;
  }

  async #fail(code: string, detail: string): Promise<void> {
    await this.#host.append(conversationFailure(code, detail));
    await this.#host.setStatus('error');
  }
}

function takenIds(host: EngineHost): Set<string> {
  return new Set(
    host
      .events()
      .flatMap((event) => (event.kind === 'ActionEvent' ? [event.tool_call_id, event.llm_response_id] : [])),
  );
}
