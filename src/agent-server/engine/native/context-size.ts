import type { ModelMessage } from 'ai';
import { estimateTokens } from './token-estimate.js';

/** How large the next prompt is: what the provider counted last time, and an estimate of what came since. */
export class ContextSize {
  #counted: { tokens: number; messages: number } | null = null;

  /** @param promptTokens as the provider counted them for these messages */
  observe(promptTokens: number, messages: number): void {
    this.#counted = { tokens: promptTokens, messages };
  }

  /** The history was cut: the last count says nothing any more. */
  forget(): void {
    this.#counted = null;
  }

  /** @param fixed what goes along with the messages: instructions and tools */
  tokens(fixed: unknown, messages: readonly ModelMessage[]): number {
    if (this.#counted === null || this.#counted.messages > messages.length) {
      return estimateTokens(fixed) + estimateTokens(messages);
    }
    return this.#counted.tokens + estimateTokens(messages.slice(this.#counted.messages));
  }
}
