import type {
  AssistantContent,
  AssistantModelMessage,
  FilePart,
  ModelMessage,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from 'ai';
import {
  isUserMessage,
  type ActionEvent,
  type AgentEvent,
  type Condensation,
  type Content,
  type MessageEvent,
  type ObservationEvent,
  type SystemPromptEvent,
} from '@slipway/agent-protocol/events.js';
import { terminalText } from '../../tools/terminal-screen.js';
import type { OriginalPart, OriginalResponse, Originals } from '../agent-engine.js';
import { isResult, type ResultEvent, UNKNOWN_RESULT } from '../agent-events.js';
import { parseArguments } from './tool-calls.js';

const LEFT_OUT = 'left out';
const SUMMARY = 'Summary of the earlier part of this conversation, which was left out:';

export type VisibleEvent = SystemPromptEvent | MessageEvent | ActionEvent | ResultEvent | Condensation;

interface WrittenBy {
  originals: Originals;
  origin: string;
}

interface Prompt {
  /** The system prompt; null while the log has none. */
  instructions: string | null;
  messages: ModelMessage[];
}

/** Returns what model APIs require: each response with all its calls, then a result or an error for each of them. */
export function messagesFromEvents(
  events: readonly AgentEvent[],
  written: WrittenBy = { originals: new Map(), origin: '' },
): Prompt {
  const view = visibleEvents(events);
  const results = resultsOf(view);
  const lastUser = view.findLastIndex(isUserMessage);
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
        messages.push(...fromMessage(event, written));
        break;
      case 'Condensation':
        messages.push({ role: 'user', content: `${SUMMARY}\n\n${event.summary ?? ''}` });
        break;
      case 'ActionEvent': {
        const calls = responses.get(event.llm_response_id) ?? [];
        if (calls[0] === event) {
          messages.push(...fromResponse(event, calls, results, written, index > lastUser));
        }
        break;
      }
    }
  }
  return { instructions, messages };
}

/** A condensation stands at its offset in place of the events that it covers, earlier condensations among them. */
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

function isVisible(event: AgentEvent): event is VisibleEvent {
  return (
    isResult(event) ||
    event.kind === 'SystemPromptEvent' ||
    event.kind === 'MessageEvent' ||
    event.kind === 'ActionEvent' ||
    event.kind === 'Condensation'
  );
}

/** What the model reads as the result of its call; `images` says where the images of the result are. */
export function resultText(event: ResultEvent, images = LEFT_OUT): string {
  if (event.kind === 'AgentErrorEvent') {
    return event.error;
  }
  if (event.kind === 'UserRejectObservation') {
    return `The user refused this call: ${event.rejection_reason}`;
  }
  return shownText(event.observation, images) || '(no output)';
}

/** Programs and tool servers write for terminals; the text of a file stays as it is. Models read and write LF. */
function shownText({ kind, content }: ObservationEvent['observation'], images: string): string {
  const text = textOf(content, images);
  const isOutput = kind === 'TerminalObservation' || kind === 'MCPToolObservation';
  return (isOutput ? terminalText(text) : text).replaceAll('\r\n', '\n');
}

export function textOf(content: readonly Content[], images = LEFT_OUT): string {
  return content
    .map((part) => (part.type === 'text' ? part.text : `[${part.image_urls.length} image(s) ${images}]`))
    .join('\n');
}

function fromMessage(event: MessageEvent, written: WrittenBy): ModelMessage[] {
  const { llm_message: message, extended_content, llm_response_id: id } = event;
  if (message.role === 'assistant') {
    const text = textOf(message.content);
    const reasoning = message.reasoning_content ?? '';
    const own = originalOf(id, written);
    const [content, opaque] = fromOriginal(own) ?? [textParts(own === null ? '' : reasoning, text)];
    return content.length === 0 ? [] : [{ role: 'assistant', content, ...opaque }];
  }
  const parts = [...message.content, ...extended_content].flatMap((part): (TextPart | FilePart)[] =>
    part.type === 'text' ? [{ type: 'text', text: part.text }] : imageParts(part),
  );
  return parts.length === 0 ? [] : [{ role: 'user', content: parts }];
}

/** `isRecent` means part of the current task, where a model expects reasoning back, even another model's. */
function fromResponse(
  first: ActionEvent,
  actions: readonly ActionEvent[],
  results: Results,
  written: WrittenBy,
  isRecent: boolean,
): ModelMessage[] {
  const own = originalOf(first.llm_response_id, written);
  const thought = actions.map((action) => textOf(action.thought)).filter((text) => text !== '');
  const reasoning = own === null && !isRecent ? '' : (first.reasoning_content ?? '');
  const [content, opaque] = fromOriginal(own) ?? [textParts(reasoning, thought.join('\n'))];
  const calls = new Map(
    content.flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part]] : [])),
  );
  return [
    {
      role: 'assistant',
      content: [
        // Calls that were condensed, or never logged, have no result.
        ...content.filter(
          (part) =>
            part.type !== 'tool-call' || actions.some(({ tool_call: call }) => call.id === part.toolCallId),
        ),
        ...actions
          .filter(({ tool_call: call }) => !calls.has(call.id))
          .map((action) => toCall(action.tool_call)),
      ],
      ...opaque,
    },
    { role: 'tool', content: actions.map((action) => toResult(action, results.get(action))) },
    ...resultImages(actions.map((action) => results.get(action))),
  ];
}

type AssistantParts = Exclude<AssistantContent, string>;

function textParts(reasoning: string, text: string): AssistantParts {
  return [
    ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
  ];
}

/** Returns null if events show all of the response, or if it is not known which model wrote it. */
function originalOf(
  id: string | null | undefined,
  { originals, origin }: WrittenBy,
): OriginalResponse | null {
  const original = originals.get(id ?? '');
  if (original === undefined) {
    return null;
  }
  if (original.origin === origin) {
    return original;
  }
  const parts = original.parts.filter(({ type }) => type !== 'reasoning');
  return { ...original, message: {}, parts: parts.map((part) => ({ ...part, opaque: null })) };
}

function fromOriginal(
  original: OriginalResponse | null,
): [AssistantParts, Pick<AssistantModelMessage, 'providerOptions'>] | null {
  if (original === null) {
    return null;
  }
  const { message, parts } = original;
  const isReasoningElsewhere = typeof message['reasoning'] === 'string';
  const content = parts.flatMap((part) =>
    part.type === 'reasoning' && isReasoningElsewhere ? [] : [fromOriginalPart(part)],
  );
  return [
    content,
    Object.keys(message).length === 0 ? {} : { providerOptions: { openaiCompatible: message } },
  ];
}

function fromOriginalPart(part: OriginalPart): AssistantParts[number] {
  const opaque = part.opaque === null ? {} : { providerOptions: part.opaque };
  return part.type === 'call'
    ? { ...toCall(part), ...opaque }
    : { type: part.type, text: part.text, ...opaque };
}

function toCall({
  id,
  name,
  arguments: json,
}: Pick<ActionEvent['tool_call'], 'id' | 'name' | 'arguments'>): ToolCallPart {
  // No API accepts arguments that are not an object; the error that follows quotes them.
  return { type: 'tool-call', toolCallId: id, toolName: name, input: parseArguments(json) ?? {} };
}

function toResult({ tool_call: call }: ActionEvent, event: ResultEvent | undefined): ToolResultPart {
  const failed = event === undefined || event.kind === 'AgentErrorEvent';
  const value = event === undefined ? UNKNOWN_RESULT : resultText(event, 'in the next message');
  return {
    type: 'tool-result',
    toolCallId: call.id,
    toolName: call.name,
    output: { type: failed ? 'error-text' : 'text', value },
  };
}

function imageParts({ image_urls: urls }: Extract<Content, { type: 'image' }>): FilePart[] {
  return urls.map((url) => ({ type: 'file', data: url, mediaType: 'image' }));
}

/** Most servers take no images in results, so they follow in a message of their own. */
function resultImages(results: readonly (ResultEvent | undefined)[]): ModelMessage[] {
  const parts = results.flatMap((event): (TextPart | FilePart)[] => {
    const content = event?.kind === 'ObservationEvent' ? event.observation.content : [];
    const images = content.flatMap((part) => (part.type === 'image' ? imageParts(part) : []));
    return images.length === 0
      ? []
      : [{ type: 'text', text: `In the result of ${event?.tool_name}:` }, ...images];
  });
  return parts.length === 0 ? [] : [{ role: 'user', content: parts }];
}

type Results = ReadonlyMap<ActionEvent, ResultEvent>;

// The result of each call: the first later one with its id that no earlier call has taken. Old logs have ids twice.
function resultsOf(view: readonly VisibleEvent[]): Results {
  const results = new Map<ActionEvent, ResultEvent>();
  const open = new Map<string, ActionEvent[]>();
  for (const event of view) {
    if (event.kind === 'ActionEvent') {
      open.set(event.tool_call_id, [...(open.get(event.tool_call_id) ?? []), event]);
    } else if (isResult(event)) {
      const call = open.get(event.tool_call_id)?.shift();
      if (call !== undefined) {
        results.set(call, event);
      }
    }
  }
  return results;
}
