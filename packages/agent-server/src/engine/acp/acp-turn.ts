import type { ContentBlock } from '@agentclientprotocol/sdk';
import {
  contentText,
  isUserMessage,
  type AgentEvent,
  type MessageEvent,
} from '@slipway/agent-protocol/events.js';
import { within } from '@slipway/common/async.js';
import { jsonNumber } from '@slipway/common/json-access.js';
import { clipText } from '../../clipped-text.js';
import type { EngineSettings, EngineHost } from '../agent-engine.js';
import { hasCallEnded } from '../agent-events.js';
import { type Limit, stepCost } from '../limits.js';
import type { PermissionOption, PermissionOutcome, PromptResponse } from './acp-schemas.js';

interface Question {
  callId: string;
  options: readonly PermissionOption[];
  answer: (outcome: PermissionOutcome) => void;
}

type TurnResult = { response: PromptResponse } | { error: unknown };

type TurnStop = 'finished' | 'asked' | 'interrupted' | 'limited' | 'idle';

/** The agent's work on one prompt. It may outlast a run: no run is active while the user is asked. */
export class AcpTurn {
  /** Resolves when the agent has answered the prompt, or no longer can. */
  readonly finished: Promise<void>;
  result: TurnResult | null = null;
  limit: Limit | null = null;
  /** A question was not answered with yes: the agent may end its turn because of that, in whatever way. */
  isRefused = false;
  /** What was told before the answer. */
  readonly spent: Tokens = { promptTokens: 0, completionTokens: 0 };
  #isWithdrawn = false;
  questions: Question[] = [];
  #changed = Promise.withResolvers<void>();
  /** Monotonic time, in milliseconds. */
  #lastActivity = performance.now();

  constructor(response: Promise<PromptResponse>) {
    this.finished = response
      .then(
        (answer): TurnResult => ({ response: answer }),
        (error: unknown): TurnResult => ({ error }),
      )
      .then((result) => this.#finish(result));
  }

  touch(): void {
    this.#lastActivity = performance.now();
  }

  stop(limit: Limit): void {
    this.limit = limit;
    this.#wake();
  }

  /** Ends the turn for its waiters, whatever the agent does, because its events cannot be written. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  /** A question that arrives when the turn is cancelled is cancelled too, as the protocol demands. */
  async ask(callId: string, options: readonly PermissionOption[]): Promise<PermissionOutcome> {
    if (this.#isWithdrawn) {
      return { outcome: 'cancelled' };
    }
    return await new Promise<PermissionOutcome>((answer) => {
      this.questions.push({ callId, options, answer });
      this.#wake();
    });
  }

  answer(accept: boolean): void {
    this.isRefused ||= !accept;
    this.#take().forEach(({ options, answer }) => answer(choose(options, accept)));
    this.touch();
  }

  /** Allows a call that the user is not asked about, unless the turn is cancelled. */
  allow(options: readonly PermissionOption[]): PermissionOutcome {
    return this.#isWithdrawn ? { outcome: 'cancelled' } : choose(options, true);
  }

  /** Tells the agent that no answer will come, now or later. */
  withdraw(): void {
    this.#isWithdrawn = true;
    this.#take().forEach(({ answer }) => answer({ outcome: 'cancelled' }));
  }

  async next(signals: readonly AbortSignal[], idleMs: number): Promise<TurnStop> {
    const interrupted = AbortSignal.any([...signals]);
    const interruption = new Promise<void>((resolve) => {
      interrupted.addEventListener('abort', () => resolve(), { once: true });
    });
    this.touch();
    for (;;) {
      const stop = this.#stop(interrupted.aborted, idleMs);
      if (stop !== null) {
        return stop;
      }
      const idle = this.#lastActivity + idleMs - performance.now();
      await within(Math.max(idle, 1), Promise.race([this.#changed.promise, interruption]));
    }
  }

  #stop(isInterrupted: boolean, idleMs: number): TurnStop | null {
    const stops: [TurnStop, boolean][] = [
      ['finished', this.result !== null],
      ['interrupted', isInterrupted],
      ['limited', this.limit !== null],
      ['asked', this.questions.length > 0],
      ['idle', performance.now() - this.#lastActivity >= idleMs],
    ];
    return stops.find(([, holds]) => holds)?.[0] ?? null;
  }

  #finish(result: TurnResult): void {
    this.result ??= result;
    this.withdraw();
    this.#wake();
  }

  #take(): Question[] {
    const questions = this.questions;
    this.questions = [];
    return questions;
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}

/** Kinds of tools that change nothing. The kind is only the agent's claim, just as a risk is only the model's. */
const HARMLESS_KINDS = new Set(['read', 'search', 'think']);

export function mustAsk(policy: EngineSettings['confirmationPolicy'], toolKind: string | null): boolean {
  return policy === 'always' || (policy === 'risky' && !HARMLESS_KINDS.has(toolKind ?? ''));
}

/**
 * The option that says yes or no to this one call, and a permanent one only if there is no other, because the next
 * call may differ. Without a matching option, the question counts as cancelled.
 */
function choose(options: readonly PermissionOption[], accept: boolean): PermissionOutcome {
  const kinds = accept ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind));
  const [first] = found;
  return first === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: first.optionId };
}

/** Agents that report the tokens of the whole session with each turn, where others report those of the turn. */
const CUMULATIVE = new Set(['Copilot', '@mistralai/mistral-vibe', 'hermes-agent']);

export async function countTurn(
  host: EngineHost,
  response: PromptResponse,
  {
    isStep,
    agent,
    spent = { promptTokens: 0, completionTokens: 0 },
  }: { isStep: boolean; agent: string; spent?: Tokens },
): Promise<void> {
  const reported = tokensOf(response) ?? spent;
  const { promptTokens, completionTokens } = CUMULATIVE.has(agent)
    ? await newTokens(host, reported)
    : reported;
  const { modelPrices, llm } = host.settings;
  // A cost that the agent reports itself would be counted twice.
  const tellsCost = jsonNumber(host.memory(), 'costSeen') !== null && host.memory()['tellsCost'] === true;
  const costUsd = tellsCost ? 0 : stepCost(modelPrices, llm.model, { promptTokens, completionTokens });
  const costSource = tellsCost ? 'provider' : costUsd === null ? 'unknown' : 'catalogue';
  if (isStep || promptTokens > 0 || completionTokens > 0) {
    await host.addUsage({ promptTokens, completionTokens, costUsd, costSource, isStep });
  }
}

export async function countCost(
  host: EngineHost,
  { amount, currency }: { amount: number; currency: string },
): Promise<void> {
  if (currency.toUpperCase() !== 'USD') {
    return;
  }
  const seen = jsonNumber(host.memory(), 'costSeen') ?? 0;
  // A restarted agent may count from zero again.
  const more = amount < seen ? amount : amount - seen;
  await host.remember({ costSeen: amount, tellsCost: true });
  if (more > 0) {
    const usage = { promptTokens: 0, completionTokens: 0, costUsd: more, isStep: false };
    await host.addUsage({ ...usage, costSource: 'provider' });
  }
}

interface Tokens {
  promptTokens: number;
  completionTokens: number;
}

async function newTokens(host: EngineHost, reported: Tokens): Promise<Tokens> {
  const { promptTokens, completionTokens } = reported;
  if (promptTokens === 0) {
    return reported;
  }
  const memory = host.memory();
  const more = {
    promptTokens: promptTokens - (jsonNumber(memory, 'promptTokensSeen') ?? 0),
    completionTokens: completionTokens - (jsonNumber(memory, 'completionTokensSeen') ?? 0),
  };
  await host.remember({ promptTokensSeen: promptTokens, completionTokensSeen: completionTokens });
  // A restarted agent may count from zero again.
  return more.promptTokens < 0 || more.completionTokens < 0 ? reported : more;
}

function tokensOf({ usage, _meta: meta }: PromptResponse): Tokens | null {
  if (usage) {
    const { inputTokens, outputTokens, cachedReadTokens, cachedWriteTokens } = usage;
    return {
      promptTokens: inputTokens + cachedReadTokens + cachedWriteTokens,
      completionTokens: outputTokens,
    };
  }
  const counted = meta?.quota.token_count;
  return counted ? { promptTokens: counted.input_tokens, completionTokens: counted.output_tokens } : null;
}

const GO_ON = 'Your work was interrupted. Go on where you stopped.';
const LOST =
  'You have worked on this before, in a session that is lost. What was said and done in it follows, the oldest first: it is to remember, not to do again. Your files are as you left them.';
const [MAX_HISTORY, MAX_SAID] = [40_000, 4_000];

interface PromptOptions {
  /** Id of the last message that an agent was given; null before the first. */
  lastMessage: string | null;
  remembers: boolean;
  takesImages: boolean;
  settings: Pick<EngineSettings, 'systemPromptSuffix' | 'language'>;
  /** What the user said besides messages, if anything. */
  remark: string | null;
}

export function unsentMessages(events: readonly AgentEvent[], lastMessage: string | null): MessageEvent[] {
  const after = lastMessage === null ? -1 : events.findLastIndex(({ id }) => id === lastMessage);
  return events.slice(after + 1).filter(isUserMessage);
}

/** What to give the agent now. Without memory, it gets the user's last message again, and what the log has besides. */
export function toPrompt(
  events: readonly AgentEvent[],
  options: PromptOptions,
): { blocks: ContentBlock[]; lastMessage: string | null } {
  const unsent = unsentMessages(events, options.lastMessage);
  const last = events.findLast(isUserMessage);
  const messages = unsent.length > 0 || options.remembers || last === undefined ? unsent : [last];
  const remark = options.remark === null ? [] : [textBlock(options.remark)];
  const said = [...remark, ...messages.flatMap((message) => toBlocks(message, options.takesImages))];
  const blocks = said.length === 0 ? [textBlock(GO_ON)] : said;
  return {
    blocks: options.remembers
      ? blocks
      : [...instructions(options.settings), ...history(events, new Set(messages)), ...blocks],
    lastMessage: messages.at(-1)?.id ?? options.lastMessage,
  };
}

function instructions({ systemPromptSuffix, language }: PromptOptions['settings']): ContentBlock[] {
  const parts = [systemPromptSuffix, language ? `Answer in this language: ${language}.` : null];
  return parts.flatMap((part) => (part ? [textBlock(part)] : []));
}

function history(events: readonly AgentEvent[], given: ReadonlySet<AgentEvent>): ContentBlock[] {
  const lines = events.flatMap((event) => {
    if (event.kind === 'MessageEvent' && event.source !== 'environment' && !given.has(event)) {
      const who = event.source === 'user' ? 'USER' : 'YOU';
      return [`${who}: ${clipText(contentText(event.llm_message.content), MAX_SAID)}`];
    }
    return event.kind === 'ACPToolCallEvent' && hasCallEnded(event)
      ? [`YOU DID: ${event.title}${event.is_error ? ' (failed)' : ''}`]
      : [];
  });
  return lines.length === 0 ? [] : [textBlock(`${LOST}\n\n${clipText(lines.join('\n'), MAX_HISTORY)}`)];
}

function toBlocks({ llm_message, extended_content }: MessageEvent, takesImages: boolean): ContentBlock[] {
  const said = llm_message.content.flatMap((part) =>
    part.type === 'text' ? [textBlock(part.text)] : part.image_urls.map((url) => toImage(url, takesImages)),
  );
  return [...said, ...extended_content.map(({ text }) => textBlock(text))];
}

function toImage(url: string, takesImages: boolean): ContentBlock {
  const [, mimeType, data] = /^data:(image\/[a-z0-9.+-]+);base64,(.*)$/is.exec(url) ?? [];
  if (mimeType !== undefined && data !== undefined) {
    return takesImages
      ? { type: 'image', mimeType, data }
      : textBlock('[The user sent an image, which this agent cannot read.]');
  }
  return /^https?:/i.test(url)
    ? { type: 'resource_link', uri: url, name: url }
    : textBlock('[The user sent an image in a form that this agent cannot read.]');
}

function textBlock(text: string): ContentBlock {
  return { type: 'text', text };
}
