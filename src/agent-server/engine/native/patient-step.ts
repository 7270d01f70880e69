import { LlmFailure, toLlmFailure } from './llm-failure.js';
import { modelStep, type StepAnswer, type StepRequest } from './model-step.js';

/** Waits; ends early, without an error, when the signal aborts. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

const RETRIES = 3;
const FIRST_DELAY_MS = 1_000;
const MAX_RETRY_AFTER_MS = 30_000;

/**
 * Asks the model, up to three times again when the provider is busy, broken or away.
 *
 * @throws LlmFailure when there is no answer; the signal's reason when it aborts
 */
export async function patientStep(request: StepRequest, wait: Wait): Promise<StepAnswer> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return notEmpty(await modelStep(request));
    } catch (error) {
      request.signal.throwIfAborted();
      const failure = toLlmFailure(error, Date.now());
      if (failure.retryAfterMs === null || attempt === RETRIES) {
        throw failure;
      }
      await wait(retryDelay(attempt, failure.retryAfterMs), request.signal);
      request.signal.throwIfAborted();
    }
  }
}

/**
 * Milliseconds before the next attempt: 1, 2, 4 s, or what the provider asks for up to 30 s.
 *
 * @param attempt from 0
 */
export function retryDelay(attempt: number, retryAfterMs: number): number {
  return Math.max(FIRST_DELAY_MS * 2 ** attempt, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}

function notEmpty(answer: StepAnswer): StepAnswer {
  if (answer.text.trim() === '' && answer.calls.length === 0) {
    throw new LlmFailure('LlmEmptyAnswer', 'The model answered nothing.', 0);
  }
  return answer;
}
