import { within } from '@slipway/common/async.js';
import { jsonText } from '@slipway/common/json-access.js';
import { clipText } from '../../clipped-text.js';
import type { ToolView } from '../../tool-view.js';
import { type AcpLaunch, AgentEngine, AgentUnavailableError, type EngineHost } from '../agent-engine.js';
import { conversationFailure, failRun, limitReached } from '../limits.js';
import { closeOpenCalls } from '../agent-events.js';
import { toPrompt, unsentMessages, AcpTurn, countTurn } from './acp-turn.js';
import { AcpConversation } from './acp-conversation.js';
import { AcpSession } from './acp-session.js';
import { AcpFailure } from './acp-connection.js';

/** How long a pause waits for the agent to end its turn by itself. */
const CANCEL_WAIT_MS = 700;
/** How long the agent may take to end its turn before its process is ended. */
const CANCEL_GRACE_MS = 5_000;
const MAX_DETAIL = 2_000;

interface OpenAgent {
  session: AcpSession;
  conversation: AcpConversation;
}

/**
 * Runs an agent that is not our own over the Agent Client Protocol, as a process in the view of tools. The log has
 * only what it reports. This module loads the protocol's SDK: import it when the first such conversation runs.
 */
export class AcpEngine extends AgentEngine {
  readonly #view: ToolView;
  #agent: OpenAgent | null = null;
  #opening: Promise<OpenAgent> | null = null;
  #turn: AcpTurn | null = null;
  /** Resolves when an interrupted turn, or its agent, has ended. */
  #settling: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(view: ToolView) {
    super();
    this.#view = view;
  }

  async prepare(host: EngineHost): Promise<void> {
    await this.#open(host).catch(asUnavailable);
  }

  async run(host: EngineHost, signal: AbortSignal): Promise<void> {
    await this.#reportFailures(host, async () => {
      // The user went on without answering the agent's question.
      await this.#interrupt();
      await closeOpenCalls(host, 'Not run, or interrupted: it has no result.');
      await this.#work(host, signal);
    });
  }

  async confirm(host: EngineHost, rejection: string | null, signal: AbortSignal): Promise<void> {
    await this.#reportFailures(host, async () => {
      const [turn, agent] = [this.#turn, this.#agent];
      if (turn === null || agent === null || turn.result !== null) {
        await closeOpenCalls(host, 'The agent ended before it heard the answer, and has to ask again.');
        await this.#work(host, signal);
        return;
      }
      if (rejection !== null) {
        await agent.conversation.reject(turn, rejection);
      }
      turn.answer(rejection === null);
      if (rejection !== null) {
        // The protocol has no member for the reason: the agent reads it with the next message.
        await host.remember({ remark: `The user rejected a call: ${rejection}` });
      }
      await this.#follow(host, agent, turn, signal, rejection === null ? 'finished' : 'idle');
    });
  }

  async ask(host: EngineHost, question: string): Promise<string> {
    const { session, conversation } = await this.#open(host).catch(asUnavailable);
    const fork = await session.fork(host.settings.workingDir).catch(asUnavailable);
    if (fork === null) {
      throw new AgentUnavailableError(
        'This agent answers no questions beside its work: send a message instead.',
      );
    }
    const answering = conversation.collect(fork, async () => {
      const answer = await session.prompt([{ type: 'text', text: question }], fork);
      await countTurn(host, answer, { isStep: false, agent: '' });
    });
    return await answering.catch(asUnavailable);
  }

  /** Agents condense their history themselves. */
  async condense(): Promise<boolean> {
    return false;
  }

  async switchModel(host: EngineHost, model: string): Promise<void> {
    const { session } = await this.#open(host).catch(asUnavailable);
    await session.switchModel(model).catch(asUnavailable);
    await host.remember({ model });
    await host.describeAgent(session.details);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => undefined);
    await this.#closeAgent();
  }

  async #work(host: EngineHost, signal: AbortSignal): Promise<void> {
    const agent = await this.#open(host);
    if (signal.aborted || host.pauseSignal().aborted) {
      await host.setStatus('paused');
      return;
    }
    const limit = limitReached(host.settings, host.totals());
    if (limit !== null) {
      await failRun(host, limit.code, limit.detail);
      return;
    }
    const memory = host.memory();
    const prompt = toPrompt(host.events(), {
      lastMessage: jsonText(memory, 'lastMessage'),
      remembers: memory['isBegun'] === true,
      takesImages: agent.session.details.capabilities.image,
      settings: host.settings,
      remark: jsonText(memory, 'remark'),
    });
    const turn = new AcpTurn(agent.session.prompt(prompt.blocks));
    this.#turn = turn;
    agent.conversation.begin(turn);
    await host.remember({ isBegun: true, lastMessage: prompt.lastMessage, remark: null });
    await this.#follow(host, agent, turn, signal, 'finished');
  }

  /** Follows a turn until it has to wait or ends. Then the agent gets the messages that arrived meanwhile. */
  async #follow(
    host: EngineHost,
    agent: OpenAgent,
    turn: AcpTurn,
    signal: AbortSignal,
    whenDone: 'finished' | 'idle',
  ): Promise<void> {
    const { idleTimeoutMs } = launchOf(host);
    switch (await turn.next([signal, host.pauseSignal()], idleTimeoutMs)) {
      case 'finished':
        this.#turn = null;
        if (!(await this.#conclude(host, agent, turn))) {
          return;
        }
        if (unsentMessages(host.events(), jsonText(host.memory(), 'lastMessage')).length > 0) {
          await this.#work(host, signal);
        } else {
          await host.setStatus(whenDone);
        }
        return;
      case 'asked':
        await host.setStatus('waiting_for_confirmation');
        return;
      case 'interrupted':
        await this.#interrupt();
        await host.setStatus('paused');
        return;
      case 'limited':
        await this.#interrupt();
        await failRun(host, turn.limit?.code ?? 'MaxIterationsReached', turn.limit?.detail ?? '');
        return;
      case 'idle':
        await this.#interrupt();
        await failRun(
          host,
          'ACPIdleTimeout',
          `The agent did nothing for ${Math.round(idleTimeoutMs / 1000)} seconds, and was stopped. Send a message to go on.`,
        );
    }
  }

  /** False: the agent is not done, and the status says why. */
  async #conclude(host: EngineHost, { conversation, session }: OpenAgent, turn: AcpTurn): Promise<boolean> {
    const { result } = turn;
    if (result === null || 'error' in result) {
      await conversation.end('failed');
      if (turn.isRefused && isRefusal(result?.error)) {
        // Some agents answer a prompt with an error where the protocol has the stop reason `cancelled`.
        await host.setStatus('paused');
        return false;
      }
      throw result === null ? new Error('the turn has no result') : result.error;
    }
    const { stopReason } = result.response;
    await conversation.end(stopReason === 'cancelled' ? 'failed' : 'completed');
    const isStep = conversation.transcript.begun === 0;
    await countTurn(host, result.response, { isStep, agent: session.details.name, spent: turn.spent });
    switch (stopReason) {
      case 'end_turn':
        return true;
      case 'cancelled':
        await host.setStatus('paused');
        return false;
      case 'refusal':
        await failRun(host, 'UsagePolicyRefusal', 'The agent refuses to go on with this conversation.');
        return false;
      default:
        await failRun(
          host,
          'ACPTurnLimit',
          `The agent stopped at a limit of its own (${clipText(stopReason, 100)}). Send a message to go on.`,
        );
        return false;
    }
  }

  async #interrupt(): Promise<void> {
    const [turn, agent] = [this.#turn, this.#agent];
    this.#turn = null;
    if (turn !== null && agent !== null && turn.result === null) {
      const { session, conversation } = agent;
      turn.withdraw();
      await session.connection.cancel(session.id);
      await within(CANCEL_WAIT_MS, turn.finished);
      await conversation.end('failed');
      if (turn.result === null) {
        this.#settling = this.#settle(turn);
      }
    }
  }

  async #settle(turn: AcpTurn): Promise<void> {
    await within(CANCEL_GRACE_MS, turn.finished);
    if (turn.result === null) {
      await this.#closeAgent();
    }
  }

  async #open(host: EngineHost): Promise<OpenAgent> {
    await this.#settling;
    if (this.#agent?.session.connection.isOpen) {
      return this.#agent;
    }
    if (this.#isClosed) {
      throw new Error('the conversation has ended');
    }
    this.#opening ??= this.#start(host).finally(() => {
      this.#opening = null;
    });
    return await this.#opening;
  }

  async #start(host: EngineHost): Promise<OpenAgent> {
    await this.#closeAgent();
    this.#agent = await openAgent(host, this.#view);
    return this.#agent;
  }

  async #closeAgent(): Promise<void> {
    const agent = this.#agent;
    this.#agent = null;
    await agent?.session.connection.close();
  }

  /** Turns a failure of the agent into an error event that ends the run and says why. */
  async #reportFailures(host: EngineHost, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof AcpFailure)) {
        throw error;
      }
      await failRun(host, error.code, clipText(error.message, MAX_DETAIL));
    }
  }
}

/** The agent itself is well: it answered with an error. */
function isRefusal(error: unknown): boolean {
  return error instanceof AcpFailure && error.code === 'ACPPromptError';
}

/** @throws AgentUnavailableError in place of an AcpFailure, and every other error as it is */
function asUnavailable(error: unknown): never {
  throw error instanceof AcpFailure
    ? new AgentUnavailableError(clipText(error.message, MAX_DETAIL), { cause: error })
    : error;
}

/** Starts a conversation's agent, and continues its earlier session if it can. @throws AcpFailure */
async function openAgent(host: EngineHost, view: ToolView): Promise<OpenAgent> {
  const launch = launchOf(host);
  const memory = host.memory();
  const conversation = new AcpConversation(host, view);
  const earlier = jsonText(memory, 'sessionId');
  const session = await AcpSession.open({ view, host, launch, conversation, earlier });
  try {
    conversation.sessionId = session.id;
    const model = jsonText(memory, 'model') ?? launch.model;
    if (model !== null && model !== session.details.currentModel) {
      await session.switchModel(model);
    }
    if (launch.sessionMode !== null) {
      await session.setMode(launch.sessionMode);
    }
    await announce(host, session);
    return { session, conversation };
  } catch (error) {
    await session.connection.close();
    throw error;
  }
}

async function announce(host: EngineHost, session: AcpSession): Promise<void> {
  const memory = host.memory();
  const isBegun = memory['isBegun'] === true;
  await announceAgent(host, session);
  for (const problem of session.mcpProblems) {
    await host.append(conversationFailure('McpServerUnavailable', problem));
  }
  if (isBegun && !session.isLoaded) {
    const why = session.details.capabilities.loadSession
      ? 'no longer has its session'
      : 'cannot load earlier sessions';
    await host.append(
      conversationFailure(
        'ACPSessionLost',
        `The agent was started again and ${why}: it is told what was said and done before, and remembers no more. Its files are as it left them.`,
      ),
    );
  }
  await host.remember({
    sessionId: session.id,
    isBegun: session.isLoaded && isBegun,
    costSeen: session.isLoaded ? (memory['costSeen'] ?? 0) : 0,
    promptTokensSeen: session.isLoaded ? (memory['promptTokensSeen'] ?? 0) : 0,
    completionTokensSeen: session.isLoaded ? (memory['completionTokensSeen'] ?? 0) : 0,
  });
  await host.describeAgent(session.details);
}

async function announceAgent(host: EngineHost, { details: { name, version } }: AcpSession): Promise<void> {
  const title = clipText(`${name} ${version}`.trim() || 'an agent', 200);
  const text = `This conversation is run by ${title}, which has a system prompt and tools of its own (Agent Client Protocol).`;
  const isAnnounced = host
    .events()
    .some((event) => event.kind === 'SystemPromptEvent' && event.system_prompt.text === text);
  if (!isAnnounced) {
    await host.append({
      kind: 'SystemPromptEvent',
      source: 'agent',
      system_prompt: { type: 'text', text },
      tools: [],
    });
  }
}

function launchOf({ settings }: EngineHost): AcpLaunch {
  if (settings.acp === null) {
    throw new Error('the conversation names no agent to start');
  }
  return settings.acp;
}
