import type { LanguageModel } from 'ai';
import type { AgentEvent } from '../../../agent-protocol/events.js';
import type { NewEvent } from '../agent-engine.js';
import { CONDENSATION_INSTRUCTIONS, transcript } from './condensation-prompt.js';
import { forgettable } from './forgettable.js';
import type { StepAnswer } from './model-step.js';
import { patientStep, type Wait } from './patient-step.js';

export interface CondenseOptions {
  model: LanguageModel;
  /** Size above which a history is condensed. */
  limitTokens: number;
  signal: AbortSignal;
  wait: Wait;
}

export interface Condensed {
  event: NewEvent;
  answer: StepAnswer;
}

/** Part of the limit that the newest events may fill. */
const KEEP = 0.3;
/** Most characters of a transcript per token of the limit: the request must fit the same context. */
const CHARACTERS_PER_TOKEN = 2.5;

/**
 * Has the model summarise the oldest part of the history.
 *
 * @returns null when there is nothing to leave out
 * @throws LlmFailure
 */
export async function condense(
  events: readonly AgentEvent[],
  { model, limitTokens, signal, wait }: CondenseOptions,
): Promise<Condensed | null> {
  const part = forgettable(events, limitTokens * KEEP);
  if (part === null) {
    return null;
  }
  const text = transcript(part.events, Math.max(2_000, limitTokens * CHARACTERS_PER_TOKEN));
  const answer = await patientStep(
    {
      model,
      instructions: CONDENSATION_INSTRUCTIONS,
      messages: [{ role: 'user', content: text }],
      tools: [],
      signal,
    },
    wait,
  );
  return {
    answer,
    event: {
      kind: 'Condensation',
      source: 'environment',
      forgotten_event_ids: part.events.map(({ id }) => id),
      summary: answer.text,
      summary_offset: part.offset,
      llm_response_id: answer.id,
    },
  };
}
