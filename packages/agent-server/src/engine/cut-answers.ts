import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import type { NewEvent } from './agent-engine.js';

export const MAX_CONTINUATIONS = 3;
const CONTINUE =
  'Your answer was cut at the limit of its length. Go on exactly where it ends; repeat nothing and do not comment on this.';

/** For the model, in place of the result of a call that was not written to its end. */
export const CUT_CALL =
  'Not run: your answer was cut at the limit of its length before this call was complete. Make smaller calls: write long files in several steps.';

export const ANSWER_CUT = `The model's answer was cut at the limit of its length ${MAX_CONTINUATIONS + 1} times in a row. Raise max_output_tokens in the settings of the model, or ask for something smaller, and send a message to go on.`;

export function continuation(): NewEvent {
  return messageToAgent(CONTINUE);
}

export function messageToAgent(text: string): NewEvent {
  return {
    kind: 'MessageEvent',
    source: 'environment',
    llm_message: { role: 'user', content: [{ type: 'text', text }] },
    activated_skills: [],
    extended_content: [],
  };
}

export function messageOfAgent(text: string, reasoning: string, responseId?: string): NewEvent {
  return {
    kind: 'MessageEvent',
    source: 'agent',
    llm_message: {
      role: 'assistant',
      content: [{ type: 'text', text }],
      reasoning_content: reasoning.trim() === '' ? null : reasoning,
    },
    llm_response_id: responseId,
    activated_skills: [],
    extended_content: [],
  };
}

export function isContinuation(event: AgentEvent): boolean {
  if (event.kind !== 'MessageEvent' || event.source !== 'environment') {
    return false;
  }
  const [part] = event.llm_message.content;
  return part?.type === 'text' && part.text === CONTINUE;
}

/** The text of the agent's last message, with the parts before it that were cut, or of its last call of `finish`. */
export function finalAnswer(events: readonly AgentEvent[]): string {
  const parts: string[] = [];
  for (let index = events.length - 1; index >= 0; index -= 1) {
    const event = events[index];
    if (event?.kind === 'ActionEvent' && event.action?.kind === 'FinishAction' && parts.length === 0) {
      return event.action.message;
    }
    if (event?.kind === 'MessageEvent' && event.source === 'agent') {
      parts.unshift(
        event.llm_message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n'),
      );
      const before = events[index - 1];
      if (before === undefined || !isContinuation(before)) {
        break;
      }
    }
  }
  return parts.join('');
}

/** How an answer ended: by itself, at the limit of its length or of the context, by a filter of contents, or a failure. */
export type AnswerEnding = 'complete' | 'cut' | 'full' | 'filtered' | 'broken';

const CUT = /^(length|max_?tokens|max_output_tokens|model_length)$/i;
const FILTERED =
  /^(content[_-]?filter(ed)?(:.*)?|refusal|safety|recitation|blocklist|prohibited_content|spii|sensitive|language|.*policy.*)$/i;
/** Of Gemini, OpenRouter, DeepSeek, Z.ai and vLLM, in this order. */
const BROKEN =
  /malformed[_ ](function|tool)[_ ]call|unexpected[_ ]tool[_ ]call|^(error|insufficient_system_resource|network_error|abort(ed)?)$/i;

export function answerEnding(unified: string, raw: string | undefined): AnswerEnding {
  if (raw === 'model_context_window_exceeded') {
    return 'full';
  }
  if (unified === 'length' || CUT.test(raw ?? '')) {
    return 'cut';
  }
  if (BROKEN.test(raw ?? '')) {
    return 'broken';
  }
  return unified === 'content-filter' || FILTERED.test(raw ?? '') ? 'filtered' : 'complete';
}
