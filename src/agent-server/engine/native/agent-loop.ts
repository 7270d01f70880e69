import type { ActionEvent, AgentEvent, SecurityRisk } from '../../../agent-protocol/events.js';
import { openCalls } from '../../conversations/open-calls.js';
import type { Tool } from '../../tools/tool.js';
import type { EngineHost, EngineSettings } from '../agent-engine.js';
import { actionOf, messageOf, withUniqueIds } from './answer-events.js';
import type { Condenser } from './condenser.js';
import type { ModelOf } from './language-model.js';
import { LlmFailure } from './llm-failure.js';
import { isResult, messagesFromEvents, type ResultEvent, resultText } from './messages-from-events.js';
import { patientStep, type StepAnswer, type StepRequest, type Wait } from './model-step.js';
import type { NativeTools } from './native-tools.js';
import { dynamicContext, systemPrompt } from './system-prompt.js';
import { callError, offeredTool, type PendingCall, readCall, runCalls } from './tool-calls.js';
import { conversationFailure, countUsage, limitReached } from './usage.js';

interface AgentLoopOptions {
  host: EngineHost;
  signal: AbortSignal;
  tools: NativeTools;
  condenser: Condenser;
  modelOf: ModelOf;
  wait: Wait;
}

interface ReadCalls {
  pending: PendingCall[];
  /** When one of them waits for the user, all do. */
  wait: boolean;
}

/** One run: asks the model, does what it says, and so on, until something ends it. */
export class AgentLoop {
  readonly #host: EngineHost;
  readonly #signal: AbortSignal;
  readonly #tools: NativeTools;
  readonly #condenser: Condenser;
  readonly #modelOf: ModelOf;
  readonly #wait: Wait;

  constructor({ host, signal, tools, condenser, modelOf, wait }: AgentLoopOptions) {
    this.#host = host;
    this.#signal = signal;
    this.#tools = tools;
    this.#condenser = condenser;
    this.#modelOf = modelOf;
    this.#wait = wait;
  }

  /** Ends with a status that says why. */
  async work(): Promise<void> {
    await this.#guard(async () => {
      await prepareRun(this.#host, this.#tools);
      await this.#repeat();
    });
  }

  /** Runs the calls that waited for the user, then goes on. */
  async workOnOpenCalls(): Promise<void> {
    await this.#guard(async () => {
      const seen = this.#host.events().length;
      const waiting = openCalls(this.#host.events());
      await prepareRun(this.#host, this.#tools);
      const { pending } = await this.#read(waiting, this.#tools.offered(this.#host.settings));
      if (!(await this.#runCalls(pending, seen))) {
        await this.#repeat();
      }
    });
  }

  /** @returns whether there was something to leave out */
  async condense(): Promise<boolean> {
    let condensed = false;
    await this.#guard(async () => {
      const { messages } = messagesFromEvents(this.#host.events());
      condensed = await this.#condenser.force(this.#modelOf(this.#host.settings), messages, this.#signal);
    });
    return condensed;
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
    let over = await this.#mustStop();
    while (!over) {
      over = (await this.#step()) || (await this.#mustStop());
    }
  }

  async #mustStop(): Promise<boolean> {
    const host = this.#host;
    const limit = limitReached(host.settings, host.totals());
    if (this.#signal.aborted || host.pauseRequested()) {
      await host.setStatus('paused');
    } else if (limit !== null) {
      await this.#fail(limit.code, limit.detail);
    } else if (host.settings.stuckDetection && isStuck(host.events())) {
      await host.setStatus('stuck');
    } else {
      return false;
    }
    return true;
  }

  /**
   * One answer of the model and what it asks for, or a condensation.
   *
   * @returns whether the run is over
   */
  async #step(): Promise<boolean> {
    const { confirmationPolicy } = this.#host.settings;
    const seen = this.#host.events().length;
    const tools = this.#tools.offered(this.#host.settings);
    const { instructions, messages } = messagesFromEvents(this.#host.events());
    const request: StepRequest = {
      model: this.#modelOf(this.#host.settings),
      instructions: instructions ?? '',
      messages,
      tools: [...tools.values()].map((tool) => offeredTool(tool, confirmationPolicy === 'risky')),
      signal: this.#signal,
    };
    if (
      this.#condenser.isTooLarge([instructions, request.tools], messages) &&
      (await this.#condenser.makeRoom(request.model, request.messages, this.#signal))
    ) {
      return false;
    }
    const answer = await this.#ask(request);
    return answer === null ? false : await this.#take(answer, tools, seen, messages);
  }

  /** @returns null when there was no room for the question, and there is some now */
  async #ask(request: StepRequest): Promise<StepAnswer | null> {
    try {
      const answer = await patientStep(request, this.#wait);
      this.#condenser.observe(answer, request.messages);
      return withUniqueIds(answer, takenIds(this.#host));
    } catch (error) {
      const full = error instanceof LlmFailure && error.code === 'LlmContextFull';
      if (full && (await this.#condenser.makeRoom(request.model, request.messages, this.#signal))) {
        return null;
      }
      throw error;
    }
  }

  /** Writes an answer down, then does what it asks for. */
  async #take(
    answer: StepAnswer,
    tools: ReadonlyMap<string, Tool>,
    seen: number,
    asked: unknown,
  ): Promise<boolean> {
    const { settings } = this.#host;
    if (answer.calls.length === 0) {
      await this.#host.append(messageOf(answer));
      await countUsage(this.#host, settings, answer, asked);
      return await this.#finish(seen);
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
    await countUsage(this.#host, settings, answer, asked);
    const { pending, wait } = await this.#read(actions, tools);
    if (wait) {
      await this.#host.setStatus('waiting_for_confirmation');
      return true;
    }
    return await this.#runCalls(pending, seen);
  }

  /** Closes the calls that cannot be understood. */
  async #read(actions: readonly ActionEvent[], tools: ReadonlyMap<string, Tool>): Promise<ReadCalls> {
    const { confirmationPolicy } = this.#host.settings;
    const calls: ReadCalls = { pending: [], wait: false };
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

  async #runCalls(calls: readonly PendingCall[], seen: number): Promise<boolean> {
    return (await runCalls(this.#host, calls, this.#signal)) && (await this.#finish(seen));
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

/** Whether a call waits for the user; a risk that is not known counts as high. */
export function waitsForUser(
  policy: EngineSettings['confirmationPolicy'],
  needsConfirmation: boolean,
  risk: SecurityRisk,
): boolean {
  if (!needsConfirmation || policy === 'never') {
    return false;
  }
  return policy === 'always' || risk === 'HIGH' || risk === 'UNKNOWN';
}

/** Opens the tool servers and names those that are dead; writes the system prompt if the log has none yet, or another language. */
async function prepareRun(host: EngineHost, tools: NativeTools): Promise<void> {
  for (const { server, reason } of await tools.connect()) {
    const detail = `The tool server ${server} cannot be used: ${reason}`;
    await host.append(conversationFailure('McpServerUnavailable', detail));
  }
  const { settings } = host;
  const last = host.events().findLast((event) => event.kind === 'SystemPromptEvent');
  const context = dynamicContext(settings);
  if (last?.kind === 'SystemPromptEvent' && last.dynamic_context?.text === context) {
    return;
  }
  await host.append({
    kind: 'SystemPromptEvent',
    source: 'agent',
    system_prompt: { type: 'text', text: systemPrompt() },
    dynamic_context: { type: 'text', text: context },
    tools: [...tools.offered(settings).values()].map((tool) => tool.definition()),
  });
}

const REPEATS = 4;

/** Whether the agent did the same four times in a row, with the same result, since the user last wrote. */
export function isStuck(events: readonly AgentEvent[]): boolean {
  const lastUser = events.findLastIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user');
  const recent = events.slice(lastUser + 1);
  const done = recent.filter((event) => event.kind === 'ActionEvent').slice(-REPEATS);
  const results = recent.filter((event) => isResult(event));
  const turns = done.map((action) => {
    const result = results.find((event) => event.tool_call_id === action.tool_call_id);
    return result === undefined ? null : turnOf(action, result);
  });
  return turns.length === REPEATS && turns[0] !== null && turns.every((turn) => turn === turns[0]);
}

function turnOf({ tool_name, action, tool_call }: ActionEvent, result: ResultEvent): string {
  return JSON.stringify([tool_name, action ?? tool_call.arguments, result.kind, resultText(result)]);
}
