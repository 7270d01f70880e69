import type { LanguageModel, ModelMessage } from 'ai';
import type { EngineHost } from '../agent-engine.js';
import { condense } from './condense.js';
import { ContextSize } from './context-size.js';
import { countUsage } from './count-usage.js';
import type { StepAnswer } from './model-step.js';
import type { Wait } from './patient-step.js';

/** Keeps a conversation's history small enough for its model. */
export class Condenser {
  readonly #host: EngineHost;
  readonly #wait: Wait;
  readonly #size = new ContextSize();

  constructor(host: EngineHost, wait: Wait) {
    this.#host = host;
    this.#wait = wait;
  }

  /** Takes over what the provider counted for these messages. */
  observe(answer: StepAnswer, messages: readonly ModelMessage[]): void {
    if (answer.promptTokens !== null) {
      this.#size.observe(answer.promptTokens, messages.length);
    }
  }

  /** @param fixed what is sent along with the messages */
  isTooLarge(fixed: unknown, messages: readonly ModelMessage[]): boolean {
    const { condenserTokens } = this.#host.settings;
    return condenserTokens !== null && this.#size.tokens(fixed, messages) > condenserTokens;
  }

  /**
   * Replaces the oldest part of the history by a summary of the same model; that counts as a step.
   *
   * @returns false when condensing is off, or there is nothing to leave out
   * @throws LlmFailure
   */
  async makeRoom(
    model: LanguageModel,
    messages: readonly ModelMessage[],
    signal: AbortSignal,
  ): Promise<boolean> {
    if (this.#host.settings.condenserTokens === null) {
      return false;
    }
    return await this.#condense(model, messages, signal, true);
  }

  /**
   * The same, also when condensing is off or the history is short; that counts as no step.
   *
   * @throws LlmFailure
   */
  async force(
    model: LanguageModel,
    messages: readonly ModelMessage[],
    signal: AbortSignal,
  ): Promise<boolean> {
    return await this.#condense(model, messages, signal, false);
  }

  async #condense(
    model: LanguageModel,
    messages: readonly ModelMessage[],
    signal: AbortSignal,
    isStep: boolean,
  ): Promise<boolean> {
    const { settings } = this.#host;
    const size = this.#size.tokens([], messages);
    const condensed = await condense(this.#host.events(), {
      model,
      // Less when the model's context turns out to be smaller than the setting.
      limitTokens: Math.min(settings.condenserTokens ?? size, size),
      signal,
      wait: this.#wait,
    });
    if (condensed === null) {
      return false;
    }
    await this.#host.append(condensed.event);
    await countUsage(this.#host, settings, condensed.answer, undefined, isStep);
    this.#size.forget();
    return true;
  }
}
