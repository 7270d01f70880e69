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
import { parseJson } from '../../../common/json-access.js';

const UNKNOWN_RESULT = 'The call was interrupted; whether it had an effect is not known.';

/** What closes a tool call. */
export type ResultEvent = ObservationEvent | AgentErrorEvent | UserRejectObservation;

/** Events that become part of the model's prompt. */
export type VisibleEvent = SystemPromptEvent | MessageEvent | ActionEvent | ResultEvent | Condensation;

/** The model's prompt, derived from the log alone. */
interface Prompt {
  /** null: the log has no system prompt yet. */
  instructions: string | null;
  messages: ModelMessage[];
}

/**
 * The conversation as model APIs require it: each response of the model with all its calls, followed by their results
 * wherever those are in the log, and an error for each call without a result.
 */
export function messagesFromEvents(events: readonly AgentEvent[]): Prompt {
  const view = visibleEvents(events);
  const results = new Map(
    view.filter((event) => isResult(event)).map((event) => [event.tool_call_id, event] as const),
  );
  const lastUser = view.findLastIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user');
  const actions = view.filter((event) => event.kind === 'ActionEvent');
  // A response may have several calls; it takes the position of the first one.
  const responses = Map.groupBy(actions, (action) => action.llm_response_id);
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
        messages.push(...fromResponse(responseStartingWith(responses, event), results, index > lastUser));
        break;
    }
  }
  return { instructions, messages };
}

/**
 * The history as the model sees it: condensed events are replaced by their condensation, at its offset among the
 * remaining events. A condensation that a later one includes is replaced too.
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

/** Only the last system prompt counts; it moves to the position of the first. */
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

/** The text of a content, with a note in place of images. */
export function textOf(content: readonly Content[]): string {
  return content
    .map((part) => (part.type === 'text' ? part.text : `[${part.image_urls.length} image(s) left out]`))
    .join('\n');
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

/** The calls of the response that starts with this one; none if it started earlier. */
function responseStartingWith(
  responses: ReadonlyMap<string, ActionEvent[]>,
  event: ActionEvent,
): ActionEvent[] {
  const calls = responses.get(event.llm_response_id) ?? [];
  return calls[0] === event ? calls : [];
}

/** @param withReasoning reasoning models expect their reasoning back during the same task, and not after it */
function fromResponse(
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

/** No API accepts arguments that are not an object; the error that follows quotes them. */
function objectOrEmpty(json: string): Record<string, unknown> {
  const value = parseJson(json);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : {};
}

function summaryText(summary: string): string {
  return `Summary of the earlier part of this conversation, which was left out:\n\n${summary}`;
}
