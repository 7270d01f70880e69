import type { AssistantContent, FilePart, ModelMessage, TextPart, ToolCallPart, ToolResultPart } from 'ai';
import type {
  ActionEvent,
  AgentErrorEvent,
  AgentEvent,
  Condensation,
  Content,
  MessageEvent,
  ObservationEvent,
  SystemPromptEvent,
  UserRejectObservation,
} from '../../../agent-protocol/events.js';

/** What closes a tool call. */
export type ResultEvent = ObservationEvent | AgentErrorEvent | UserRejectObservation;

/** Events that a model is told about. */
export type VisibleEvent = SystemPromptEvent | MessageEvent | ActionEvent | ResultEvent | Condensation;

/**
 * The history as the model sees it: what was condensed is gone, and the condensation stands in its place, at its
 * offset among what remains. A condensation that a later one forgets is gone too.
 */
export function visibleEvents(events: readonly AgentEvent[]): VisibleEvent[] {
  const forgotten = new Set(
    events.flatMap((event) => (event.kind === 'Condensation' ? event.forgotten_event_ids : [])),
  );
  const remaining = withOnePrompt(events.filter(isVisible)).filter(({ id }) => !forgotten.has(id));
  const view: VisibleEvent[] = remaining.filter(({ kind }) => kind !== 'Condensation');
  for (const event of remaining) {
    if (event.kind === 'Condensation' && event.summary) {
      view.splice(event.summary_offset ?? 0, 0, event);
    }
  }
  return view;
}

/** The last system prompt, which counts, in the place of the first. */
function withOnePrompt(events: readonly VisibleEvent[]): VisibleEvent[] {
  const last = events.findLast(({ kind }) => kind === 'SystemPromptEvent');
  const first = events.findIndex(({ kind }) => kind === 'SystemPromptEvent');
  return events.flatMap((event, index) => {
    if (event.kind !== 'SystemPromptEvent') {
      return [event];
    }
    return index === first && last !== undefined ? [last] : [];
  });
}

export function isResult(event: AgentEvent): event is ResultEvent {
  return (
    event.kind === 'ObservationEvent' ||
    event.kind === 'AgentErrorEvent' ||
    event.kind === 'UserRejectObservation'
  );
}

function isVisible(event: AgentEvent): event is VisibleEvent {
  return (
    isResult(event) ||
    event.kind === 'SystemPromptEvent' ||
    event.kind === 'MessageEvent' ||
    event.kind === 'ActionEvent' ||
    event.kind === 'Condensation'
  );
}

/** What the model reads as the result of its call. */
export function resultText(event: ResultEvent): string {
  if (event.kind === 'AgentErrorEvent') {
    return event.error;
  }
  if (event.kind === 'UserRejectObservation') {
    return `The user refused this call: ${event.rejection_reason}`;
  }
  return textOf(event.observation.content) || '(no output)';
}

/** The text of a content; of pictures only that there are some. */
export function textOf(content: readonly Content[]): string {
  return content
    .map((part) => (part.type === 'text' ? part.text : `[${part.image_urls.length} image(s) left out]`))
    .join('\n');
}

const UNKNOWN_RESULT = 'The call was interrupted; whether it had an effect is not known.';

/** What the model is told, made from the log alone. */
interface Prompt {
  /** null: the log has no system prompt yet. */
  instructions: string | null;
  messages: ModelMessage[];
}

/**
 * The conversation as a model's API wants it: each answer of the model with all its calls, their results right after
 * it wherever they stand in the log, and an error for each call that has none.
 */
export function messagesFromEvents(events: readonly AgentEvent[]): Prompt {
  const view = visibleEvents(events);
  const results = new Map(
    view.filter((event) => isResult(event)).map((event) => [event.tool_call_id, event] as const),
  );
  const lastUser = view.findLastIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user');
  const actions = view.filter((event) => event.kind === 'ActionEvent');
  // One answer may have several calls; it is told where the first of them stands.
  const answers = Map.groupBy(actions, (action) => action.llm_response_id);
  const messages: ModelMessage[] = [];
  let instructions: string | null = null;
  for (const [index, event] of view.entries()) {
    switch (event.kind) {
      case 'SystemPromptEvent':
        instructions = [event.system_prompt.text, event.dynamic_context?.text ?? ''].join('\n\n').trim();
        break;
      case 'MessageEvent':
        messages.push(...fromMessage(event));
        break;
      case 'Condensation':
        messages.push({ role: 'user', content: summaryText(event.summary ?? '') });
        break;
      case 'ActionEvent':
        messages.push(...fromAnswer(answerBeginningWith(answers, event), results, index > lastUser));
        break;
    }
  }
  return { instructions, messages };
}

function fromMessage({ llm_message: message, extended_content }: MessageEvent): ModelMessage[] {
  if (message.role === 'assistant') {
    const text = textOf(message.content);
    return text === '' ? [] : [{ role: 'assistant', content: text }];
  }
  const parts = [...message.content, ...extended_content].flatMap((part): (TextPart | FilePart)[] =>
    part.type === 'text'
      ? [{ type: 'text', text: part.text }]
      : part.image_urls.map((url) => ({ type: 'file', data: new URL(url), mediaType: 'image' })),
  );
  return parts.length === 0 ? [] : [{ role: 'user', content: parts }];
}

/** The calls of an answer that begins with this one; none when it began before. */
function answerBeginningWith(answers: ReadonlyMap<string, ActionEvent[]>, event: ActionEvent): ActionEvent[] {
  const calls = answers.get(event.llm_response_id) ?? [];
  return calls[0] === event ? calls : [];
}

/** @param withReasoning models that reason want it back while the same task goes on, and no longer after it */
function fromAnswer(
  actions: ActionEvent[],
  results: ReadonlyMap<string, ResultEvent>,
  withReasoning: boolean,
): ModelMessage[] {
  if (actions.length === 0) {
    return [];
  }
  const reasoning = withReasoning ? (actions[0]?.reasoning_content ?? '') : '';
  const thought = actions.map((action) => textOf(action.thought)).filter((text) => text !== '');
  const content: Exclude<AssistantContent, string> = [
    ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...(thought.length === 0 ? [] : [{ type: 'text' as const, text: thought.join('\n') }]),
    ...actions.map(toCall),
  ];
  return [
    { role: 'assistant', content },
    { role: 'tool', content: actions.map((action) => toResult(action, results.get(action.tool_call_id))) },
  ];
}

function toCall({ tool_call: call }: ActionEvent): ToolCallPart {
  return {
    type: 'tool-call',
    toolCallId: call.id,
    toolName: call.name,
    input: objectOrEmpty(call.arguments),
  };
}

function toResult({ tool_call: call }: ActionEvent, event: ResultEvent | undefined): ToolResultPart {
  const failed = event === undefined || event.kind === 'AgentErrorEvent';
  const value = event === undefined ? UNKNOWN_RESULT : resultText(event);
  return {
    type: 'tool-result',
    toolCallId: call.id,
    toolName: call.name,
    output: { type: failed ? 'error-text' : 'text', value },
  };
}

/** No API takes back arguments that are no object; the error that follows quotes them. */
function objectOrEmpty(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : {};
  } catch {
    return {};
  }
}

function summaryText(summary: string): string {
  return `Summary of the earlier part of this conversation, which was left out:\n\n${summary}`;
}
