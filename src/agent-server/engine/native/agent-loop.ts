import type { ActionEvent, AgentEvent, SecurityRisk } from '../../../agent-protocol/events.js';
import type { Tool } from '../../tools/tool.js';
import type { EngineHost, EngineSettings } from '../agent-engine.js';
import { conversationFailure, limitReached } from '../limits.js';
import { callError, openCalls } from '../open-calls.js';
import type { Condenser } from './condenser.js';
import type { ModelFactory } from './language-model.js';
import { LlmFailure } from './llm-failure.js';
import { isResult, messagesFromEvents, type ResultEvent, resultText } from './messages-from-events.js';
import { callModelWithRetries, type ModelRequest, type ModelResponse, type Wait } from './model-call.js';
import type { NativeTools } from './native-tools.js';
import { toActionEvent, toMessageEvent, withUniqueIds } from './response-events.js';
import { dynamicContext, systemPrompt } from './system-prompt.js';
import { offeredTool, parseCall, type PendingCall, runCalls } from './tool-calls.js';
import { countUsage } from './usage.js';

/** How often one run asks for a missing result. */
const MAX_RESULT_REQUESTS = 3;
const ASK_FOR_RESULT =
  'Programs wait for the result of your work. Call finish with a result that matches its schema; if the task cannot be done, call it with the result that says so best.';

interface AgentLoopOptions {
  host: EngineHost;
  signal: AbortSignal;
  tools: NativeTools;
  condenser: Condenser;
  createModel: ModelFactory;
  wait: Wait;
}

interface ParsedCalls {
  pending: PendingCall[];
  /** If one of them needs confirmation, all wait. */
  needConfirmation: boolean;
}

/** One run: calls the model, runs the tools that it calls, and repeats until something ends the run. */
export class AgentLoop {
  readonly #host: EngineHost;
  readonly #signal: AbortSignal;
  readonly #tools: NativeTools;
  readonly #condenser: Condenser;
  readonly #createModel: ModelFactory;
  readonly #wait: Wait;

  constructor({ host, signal, tools, condenser, createModel, wait }: AgentLoopOptions) {
    this.#host = host;
    this.#signal = signal;
    this.#tools = tools;
    this.#condenser = condenser;
    this.#createModel = createModel;
    this.#wait = wait;
  }

  /** Runs to the end and sets the status that says why the run ended. */
  async run(): Promise<void> {
    await this.#handleFailures(async () => {
      await prepareRun(this.#host, this.#tools);
      await this.#runSteps();
    });
  }

  /** Runs the calls that the user has confirmed, then continues. */
  async runOpenCalls(): Promise<void> {
    await this.#handleFailures(async () => {
      const seen = this.#host.events().length;
      const confirmed = openCalls(this.#host.events());
      await prepareRun(this.#host, this.#tools);
      const { pending } = await this.#parseCalls(confirmed, this.#tools.offeredTools(this.#host.settings));
      if (!(await this.#runCalls(pending, seen))) {
        await this.#runSteps();
      }
    });
  }

  /** @returns whether there was anything to condense */
  async condense(): Promise<boolean> {
    let condensed = false;
    await this.#handleFailures(async () => {
      const { messages } = messagesFromEvents(this.#host.events());
      const model = await this.#createModel(this.#host.settings);
      condensed = await this.#condenser.force(model, messages, this.#signal);
    });
    return condensed;
  }

  async #handleFailures(work: () => Promise<void>): Promise<void> {
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

  async #runSteps(): Promise<void> {
    let ended = await this.#shouldStop();
    while (!ended) {
      ended = (await this.#step()) || (await this.#shouldStop());
    }
  }

  async #shouldStop(): Promise<boolean> {
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
   * One response of the model and the calls in it, or a condensation.
   *
   * @returns whether the run has ended
   */
  async #step(): Promise<boolean> {
    const { confirmationPolicy } = this.#host.settings;
    const seen = this.#host.events().length;
    const tools = this.#tools.offeredTools(this.#host.settings);
    const { instructions, messages } = messagesFromEvents(this.#host.events());
    const request: ModelRequest = {
      model: await this.#createModel(this.#host.settings),
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
    const response = await this.#callModel(request);
    return response === null ? false : await this.#handleResponse(response, tools, seen, messages);
  }

  /** @returns null if the context was full and a condensation has made room */
  async #callModel(request: ModelRequest): Promise<ModelResponse | null> {
    try {
      const response = await callModelWithRetries(request, this.#wait);
      this.#condenser.observe(response, request.messages);
      return withUniqueIds(response, usedIds(this.#host));
    } catch (error) {
      const isContextFull = error instanceof LlmFailure && error.code === 'LlmContextFull';
      if (isContextFull && (await this.#condenser.makeRoom(request.model, request.messages, this.#signal))) {
        return null;
      }
      throw error;
    }
  }

  /** Logs a response, then runs its calls. */
  async #handleResponse(
    response: ModelResponse,
    tools: ReadonlyMap<string, Tool>,
    seen: number,
    request: unknown,
  ): Promise<boolean> {
    const { settings } = this.#host;
    if (response.calls.length === 0) {
      await this.#host.append(toMessageEvent(response));
      await countUsage(this.#host, settings, response, request);
      return await this.#finish(seen, this.#host.settings.resultSchema === null);
    }
    const actions: ActionEvent[] = [];
    for (const [index, call] of response.calls.entries()) {
      const parsed = parseCall(tools, call.name, call.arguments);
      const action = parsed.isValid ? parsed.prepared.action : null;
      const event = await this.#host.append(
        toActionEvent(response, call, index === 0, { action, risk: parsed.risk }),
      );
      if (event.kind === 'ActionEvent') {
        actions.push(event);
      }
    }
    await countUsage(this.#host, settings, response, request);
    const { pending, needConfirmation } = await this.#parseCalls(actions, tools);
    if (needConfirmation) {
      await this.#host.setStatus('waiting_for_confirmation');
      return true;
    }
    return await this.#runCalls(pending, seen);
  }

  /** Closes the calls that are invalid. */
  async #parseCalls(actions: readonly ActionEvent[], tools: ReadonlyMap<string, Tool>): Promise<ParsedCalls> {
    const { confirmationPolicy } = this.#host.settings;
    const calls: ParsedCalls = { pending: [], needConfirmation: false };
    for (const event of actions) {
      const parsed = parseCall(tools, event.tool_name, event.tool_call.arguments);
      if (parsed.isValid) {
        const { prepared, tool, risk } = parsed;
        calls.pending.push({ event, prepared });
        calls.needConfirmation ||= mustConfirm(confirmationPolicy, tool.needsConfirmation, risk);
      } else {
        await this.#host.append(callError(event, parsed.error));
      }
    }
    return calls;
  }

  async #runCalls(calls: readonly PendingCall[], seen: number): Promise<boolean> {
    return (await runCalls(this.#host, calls, this.#signal)) && (await this.#finish(seen, true));
  }

  /**
   * @param isComplete whether the agent has given everything that it was asked for
   * @returns false if there is more to do, or the user has written meanwhile
   */
  async #finish(seen: number, isComplete: boolean): Promise<boolean> {
    const added = this.#host.events().slice(seen);
    if (added.some(({ kind, source }) => kind === 'MessageEvent' && source === 'user')) {
      return false;
    }
    if (!isComplete) {
      return this.#askForResult();
    }
    await this.#host.setStatus('finished');
    return true;
  }

  /**
   * Asks for the result when the agent has answered with text only, and gives up after `MAX_RESULT_REQUESTS` requests.
   */
  async #askForResult(): Promise<boolean> {
    const events = this.#host.events();
    const lastUser = events.findLastIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user');
    const asked = events
      .slice(lastUser + 1)
      .filter(({ kind, source }) => kind === 'MessageEvent' && source === 'environment');
    if (asked.length >= MAX_RESULT_REQUESTS) {
      await this.#fail('ResultMissing', 'The agent ended without the result that result_schema asks for.');
      return true;
    }
    await this.#host.append({
      kind: 'MessageEvent',
      source: 'environment',
      llm_message: { role: 'user', content: [{ type: 'text', text: ASK_FOR_RESULT }] },
      activated_skills: [],
      extended_content: [],
    });
    return false;
  }

  async #fail(code: string, detail: string): Promise<void> {
    await this.#host.append(conversationFailure(code, detail));
    await this.#host.setStatus('error');
  }
}

function usedIds(host: EngineHost): Set<string> {
  return new Set(
    host
      .events()
      .flatMap((event) => (event.kind === 'ActionEvent' ? [event.tool_call_id, event.llm_response_id] : [])),
  );
}

/** Whether the user must confirm a call; an unknown risk counts as high. */
export function mustConfirm(
  policy: EngineSettings['confirmationPolicy'],
  needsConfirmation: boolean,
  risk: SecurityRisk,
): boolean {
  if (!needsConfirmation || policy === 'never') {
    return false;
  }
  return policy === 'always' || risk === 'HIGH' || risk === 'UNKNOWN';
}

/** Connects the tool servers and reports those that fail; writes the system prompt unless the log has the current one. */
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
    tools: [...tools.offeredTools(settings).values()].map((tool) => tool.definition()),
  });
}

const STUCK_REPEATS = 4;

/** Whether the agent made the same call four times in a row, with the same result, since the user's last message. */
export function isStuck(events: readonly AgentEvent[]): boolean {
  const lastUser = events.findLastIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user');
  const recent = events.slice(lastUser + 1);
  const calls = recent.filter((event) => event.kind === 'ActionEvent').slice(-STUCK_REPEATS);
  const results = recent.filter((event) => isResult(event));
  const turns = calls.map((action) => {
    const result = results.find((event) => event.tool_call_id === action.tool_call_id);
    return result === undefined ? null : fingerprint(action, result);
  });
  return turns.length === STUCK_REPEATS && turns[0] !== null && turns.every((turn) => turn === turns[0]);
}

function fingerprint({ tool_name, action, tool_call }: ActionEvent, result: ResultEvent): string {
  return JSON.stringify([tool_name, action ?? tool_call.arguments, result.kind, resultText(result)]);
}
