import { isUserMessage, type ActionEvent } from '@slipway/agent-protocol/events.js';
import { HIDDEN } from '../../secret-masker.js';
import { asksForRisk, judgedRisk, mustConfirm } from '../../security/risk-assessment.js';
import type { Tool } from '../../tools/tool.js';
import { type EngineHost, originalCall } from '../agent-engine.js';
import {
  CONTINUE,
  isContinuation,
  messageOfAgent,
  messageToAgent,
  callError,
  openCalls,
} from '../agent-events.js';
import { conversationFailure, countUsage, failRun, limitReached, reportCutPrompt } from '../limits.js';
import { withReadableCalls } from './call-repair.js';
import type { Condenser } from './condenser.js';
import type { ChosenModel, ModelFactory } from './language-model.js';
import { originOf } from './prompt-limits.js';
import { LlmFailure } from './llm-failure.js';
import { repeatedCalls } from './loop-detection.js';
import { messagesFromEvents } from './messages-from-events.js';
import {
  CONTENT_FILTERED,
  type ModelRequest,
  PausedWhileWaiting,
  callModelWithImages,
  type Wait,
} from './model-call.js';
import { type NativeTools, prepareRun } from './native-tools.js';
import { type ModelResponse, toActionEvent, toOriginal, withUniqueIds } from './response-parts.js';
import { hasSpokenCall, withSpokenCalls } from './spoken-calls.js';
import {
  invalidCall,
  offeredTool,
  parseCall,
  type ParsedCall,
  type PendingCall,
  runCalls,
} from './tool-calls.js';
import type { AnswerEnding } from './refusal-words.js';

const MAX_CONTINUATIONS = 3;
/** Tells the model that a call was cut, in place of the call's result. */
const CUT_CALL =
  'Not run: your answer was cut at the limit of its length before this call was complete. Make smaller calls: write long files in several steps.';

const ANSWER_CUT = `The model's answer was cut at the limit of its length ${MAX_CONTINUATIONS + 1} times in a row. Raise max_output_tokens in the settings of the model, or ask for something smaller, and send a message to go on.`;

const SPOKEN_CALL =
  'Your last message has a call of a tool in its text, which runs nothing. Make the call itself if it is still right, and write no marks of calls.';
const ONLY_SPEAKS =
  "The model, or its server, writes calls of tools into the text of its answers, where they run nothing. Give the server the model's parser of tool calls, or set native_tool_calling to false in the settings of the model, and send a message to go on.";
const MAX_RESULT_REQUESTS = 3;
const NO_RESULT = 'The agent ended without the result that result_schema asks for.';
const ASK_FOR_RESULT =
  'Programs wait for the result of your work. Call finish with a result that matches its schema; if the task cannot be done, call it with the result that says so best.';

const LOST_CALL =
  'Not run: the agent server restarted, and what the call hid from view is lost. Make the call again if it is still right.';

interface AgentLoopOptions {
  host: EngineHost;
  signal: AbortSignal;
  tools: NativeTools;
  condenser: Condenser;
  createModel: ModelFactory;
  wait: Wait;
}

interface ParsedAction {
  event: ActionEvent;
  parsed: ParsedCall;
}

interface PendingCalls {
  pending: PendingCall[];
  /** If one of them needs confirmation, all wait. */
  needConfirmation: boolean;
}

export class AgentLoop {
  readonly #options: AgentLoopOptions;
  readonly #host: EngineHost;
  readonly #signal: AbortSignal;
  #cuts = 0;
  /** Answers in a row. */
  #spokenCalls = 0;

  constructor(options: AgentLoopOptions) {
    this.#options = options;
    this.#host = options.host;
    this.#signal = options.signal;
  }

  async run(): Promise<void> {
    await this.#handleFailures(async () => {
      await prepareRun(this.#host, this.#options.tools, this.#signal);
      await this.#runSteps();
    });
  }

  async runOpenCalls(): Promise<void> {
    await this.#handleFailures(async () => {
      const seen = this.#host.events().length;
      const confirmed = openCalls(this.#host.events());
      await prepareRun(this.#host, this.#options.tools, this.#signal);
      const tools = this.#options.tools.offered();
      const { pending } = await this.#refuseInvalid(
        confirmed.map((event) => ({ event, parsed: this.#parseWritten(tools, event) })),
      );
      if (!(await this.#runCalls(pending, seen))) {
        await this.#runSteps();
      }
    });
  }

  async condense(): Promise<boolean> {
    let condensed = false;
    await this.#handleFailures(async () => {
      const model = await this.#options.createModel(this.#host.settings);
      const { messages } = promptFor(model, this.#host);
      condensed = await this.#options.condenser.makeRoom({ model, messages, signal: this.#signal }, true);
    });
    return condensed;
  }

  async #handleFailures(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#signal.aborted || error instanceof PausedWhileWaiting) {
        await this.#host.setStatus('paused');
      } else if (error instanceof LlmFailure) {
        await failRun(this.#host, error.code, error.message);
      } else {
        throw error;
      }
    }
  }

  async #runSteps(): Promise<void> {
    let ended = await this.#shouldStop();
    while (!ended) {
      ended = (await this.#step()) || (await this.#shouldStop());
    }
  }

  async #shouldStop(): Promise<boolean> {
    const host = this.#host;
    const limit = limitReached(host.settings, host.totals());
    if (this.#signal.aborted || host.pauseSignal().aborted) {
      await host.setStatus('paused');
    } else if (limit !== null) {
      await failRun(this.#host, limit.code, limit.detail);
    } else {
      return host.settings.stuckDetection && (await this.#isStuck());
    }
    return true;
  }

  async #isStuck(): Promise<boolean> {
    const period = repeatedCalls(this.#host.events());
    if (period === null) {
      return false;
    }
    const what = period === 1 ? 'the same call' : `the same ${period} calls`;
    const detail = `The agent repeats ${what} with the same results. Send a message to let it go on.`;
    await this.#host.append(conversationFailure('AgentStuck', detail));
    await this.#host.setStatus('stuck');
    return true;
  }

  /** One response of the model and its calls, or a condensation; true when the run has ended. */
  async #step(): Promise<boolean> {
    const seen = this.#host.events().length;
    await this.#options.tools.refresh(this.#signal);
    const tools = this.#options.tools.offered();
    const model = await this.#options.createModel(this.#host.settings);
    const { instructions, messages } = promptFor(model, this.#host);
    const request: ModelRequest = {
      model,
      instructions: instructions ?? '',
      messages,
      tools: [...tools.values()].map((tool) => offeredTool(tool, asksForRisk(this.#host.settings))),
      signal: this.#signal,
      showDraft: (draft) => this.#host.showDraft(draft),
    };
    if (
      this.#options.condenser.isTooLarge([instructions, request.tools], messages) &&
      (await this.#options.condenser.makeRoom(request))
    ) {
      return false;
    }
    const response = await this.#callModel(request);
    if (response === null) {
      return false;
    }
    await this.#host.keepOriginal(toOriginal(response, originOf(model.target)));
    return await this.#handleResponse(response, tools, seen, messages);
  }

  /** @returns null if the history was too long, or may have been, and a condensation has made room */
  async #callModel(request: ModelRequest): Promise<ModelResponse | null> {
    try {
      const response = await callModelWithImages(request, this.#options);
      this.#options.condenser.observe(response, request.messages);
      const { instructions, messages, tools } = request;
      await reportCutPrompt(this.#host, response.promptTokens ?? 0, [instructions, messages, tools]);
      const readable = await withReadableCalls(response, new Set(tools.map(({ name }) => name)));
      return withUniqueIds(await withSpokenCalls(this.#host, readable, tools), usedIds(this.#host));
    } catch (error) {
      if (error instanceof LlmFailure && (await this.#options.condenser.makeRoomAfter(error, request))) {
        return null;
      }
      throw error;
    }
  }

  async #handleResponse(
    response: ModelResponse,
    tools: ReadonlyMap<string, Tool>,
    seen: number,
    request: unknown,
  ): Promise<boolean> {
    const { settings } = this.#host;
    this.#cuts = response.ending === 'cut' ? this.#cuts + 1 : 0;
    const isSpoken =
      response.ending === 'complete' && response.calls.length === 0 && hasSpokenCall(response.text);
    this.#spokenCalls = isSpoken ? this.#spokenCalls + 1 : 0;
    if (response.calls.length === 0 || response.ending === 'filtered') {
      if (response.text.trim() !== '') {
        await this.#host.append(messageOfAgent(response.text, response.reasoning, response.id));
      }
      await countUsage(this.#host, settings, response, request);
      return await this.#endAnswer(response.ending, seen);
    }
    const actions: ParsedAction[] = [];
    for (const [index, call] of response.calls.entries()) {
      const isCut = response.ending === 'cut' && index === response.calls.length - 1;
      const parsed = isCut ? invalidCall(CUT_CALL) : parseCall(tools, call.name, call.arguments);
      const action = parsed.isValid ? parsed.prepared.action : null;
      const thought = [response.text, response.reasoning];
      const risk = judgedRisk(settings, { ...call, thought, stated: parsed.risk });
      const event = await this.#host.append(toActionEvent(response, call, index === 0, { action, risk }));
      if (event.kind === 'ActionEvent') {
        actions.push({ event, parsed });
      }
    }
    await countUsage(this.#host, settings, response, request);
    const { pending, needConfirmation } = await this.#refuseInvalid(actions);
    if (needConfirmation) {
      await this.#host.setStatus('waiting_for_confirmation');
      return true;
    }
    return (await this.#runCalls(pending, seen)) || (await this.#isCutTooOften());
  }

  /** @returns whether the run has ended with an answer in words, or the beginning of one */
  async #endAnswer(ending: AnswerEnding, seen: number): Promise<boolean> {
    if (ending === 'filtered') {
      await failRun(this.#host, 'LlmContentFiltered', CONTENT_FILTERED);
      return true;
    }
    if (this.#spokenCalls === 1) {
      await this.#host.append(messageToAgent(SPOKEN_CALL));
      return false;
    }
    if (this.#spokenCalls > 1) {
      await failRun(this.#host, 'LlmCallInText', ONLY_SPEAKS);
      return true;
    }
    if (ending === 'complete') {
      return await this.#finish(seen, this.#host.settings.resultSchema === null);
    }
    if (await this.#isCutTooOften()) {
      return true;
    }
    await this.#host.append(messageToAgent(CONTINUE));
    return false;
  }

  async #isCutTooOften(): Promise<boolean> {
    if (this.#cuts <= MAX_CONTINUATIONS) {
      return false;
    }
    await failRun(this.#host, 'LlmAnswerCut', ANSWER_CUT);
    return true;
  }

  /** Answers calls that cannot be run, and returns the others. */
  async #refuseInvalid(actions: readonly ParsedAction[]): Promise<PendingCalls> {
    const calls: PendingCalls = { pending: [], needConfirmation: false };
    for (const { event, parsed } of actions) {
      if (parsed.isValid) {
        const { prepared, tool } = parsed;
        calls.pending.push({ event, prepared });
        const { needsConfirmation } = tool;
        calls.needConfirmation ||= mustConfirm(this.#host.settings, needsConfirmation, event.security_risk);
      } else {
        await this.#host.append(callError(event, parsed.error));
      }
    }
    return calls;
  }

  #parseWritten(tools: ReadonlyMap<string, Tool>, event: ActionEvent): ParsedCall {
    const { llm_response_id, tool_call: shown } = event;
    const original = originalCall(this.#host.originals(), llm_response_id, shown.id);
    if (original === null && `${shown.name} ${shown.arguments}`.includes(HIDDEN)) {
      return invalidCall(LOST_CALL);
    }
    return parseCall(tools, (original ?? shown).name, (original ?? shown).arguments);
  }

  async #runCalls(calls: readonly PendingCall[], seen: number): Promise<boolean> {
    return (await runCalls(this.#host, calls, this.#signal)) && (await this.#finish(seen, true));
  }

  /** False if there is more to do, or the user has written meanwhile. */
  async #finish(seen: number, isComplete: boolean): Promise<boolean> {
    const added = this.#host.events().slice(seen);
    if (added.some(isUserMessage)) {
      return false;
    }
    if (!isComplete) {
      return this.#askForResult();
    }
    await this.#host.setStatus('finished');
    return true;
  }

  /** Asks for the result when the agent has answered with text only; gives up after `MAX_RESULT_REQUESTS`. */
  async #askForResult(): Promise<boolean> {
    const events = this.#host.events();
    const lastUser = events.findLastIndex(isUserMessage);
    const asked = events
      .slice(lastUser + 1)
      .filter(
        (event) => event.kind === 'MessageEvent' && event.source === 'environment' && !isContinuation(event),
      );
    if (asked.length >= MAX_RESULT_REQUESTS) {
      await failRun(this.#host, 'ResultMissing', NO_RESULT);
      return true;
    }
    await this.#host.append(messageToAgent(ASK_FOR_RESULT));
    return false;
  }
}

/** The whole history, as this model takes it. */
export function promptFor({ target }: ChosenModel, host: EngineHost): ReturnType<typeof messagesFromEvents> {
  return messagesFromEvents(host.events(), { originals: host.originals(), origin: originOf(target) });
}

/** Ids of calls and responses so far. Servers may repeat them: some count anew, others draw from few numbers. */
function usedIds(host: EngineHost): Set<string> {
  return new Set(
    host
      .events()
      .flatMap((event) => [
        ...('tool_call_id' in event ? [event.tool_call_id] : []),
        ...('llm_response_id' in event && event.llm_response_id ? [event.llm_response_id] : []),
      ]),
  );
}
