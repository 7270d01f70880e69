import type { TextStreamPart, ToolSet } from 'ai';
import { jsonAt, jsonList, jsonNumber, jsonText, isJsonObject } from '@slipway/common/json-access.js';
import type {
  Draft,
  OpaqueMembers,
  OpaqueData,
  OriginalCall,
  OriginalPart,
  OriginalText,
  NewEvent,
  OriginalResponse,
} from '../agent-engine.js';
import { randomUUID } from 'node:crypto';
import type { CountedResponse } from '../limits.js';
import type { AnswerEnding } from './refusal-words.js';
import type { Action, SecurityRisk } from '@slipway/agent-protocol/events.js';

export type RequestedCall = Pick<OriginalCall, 'id' | 'name' | 'arguments'>;

export interface ModelResponse extends CountedResponse, Draft {
  id: string;
  calls: RequestedCall[];
  /** Text, reasoning and calls in the order in which they came, with the provider's own data. */
  parts: OriginalPart[];
  message: OpaqueMembers;
  ending: AnswerEnding;
}

/** Members of a call that every server of this API sends. */
const COMMON_CALL_MEMBERS = new Set(['index', 'id', 'type', 'function']);
/** Members of a message that some servers need back: those of OpenRouter, LiteLLM, Copilot and Gemini. */
const MESSAGE_MEMBERS = [
  'reasoning_details',
  'thinking_blocks',
  'reasoning_opaque',
  'provider_specific_fields',
  'extra_content',
];
type Json = OpaqueMembers[string];

const STREAMED_TEXTS = ['text', 'summary', 'thinking'];

/** Collects the parts of a streamed response, and the data of the provider's own that the SDK does not pass on. */
export class ResponseParts {
  readonly #parts: OriginalPart[] = [];
  readonly #texts = new Map<string, OriginalText>();
  readonly #arguments = new Map<string, string>();
  readonly #message: OpaqueMembers = {};
  readonly #calls: { index: unknown; id: string | null; members: OpaqueMembers }[] = [];
  #reasoning = '';
  #namesReasoningContent = false;

  take(part: TextStreamPart<ToolSet>): void {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start': {
        const type = part.type === 'text-start' ? ('text' as const) : ('reasoning' as const);
        const started: OriginalText = { type, text: '', opaque: opaqueFrom(part.providerMetadata) };
        this.#texts.set(`${type} ${part.id}`, started);
        this.#parts.push(started);
        break;
      }
      case 'text-delta':
      case 'text-end':
      case 'reasoning-delta':
      case 'reasoning-end': {
        const started = this.#texts.get(`${part.type.startsWith('text') ? 'text' : 'reasoning'} ${part.id}`);
        if (started !== undefined) {
          started.text += 'text' in part ? part.text : '';
          started.opaque = opaqueFrom(part.providerMetadata) ?? started.opaque;
        }
        break;
      }
      case 'tool-call': {
        const { toolCallId: id, toolName: name, input, providerMetadata } = part;
        const written = this.#arguments.get(id) ?? JSON.stringify(input);
        const opaque = opaqueFrom(providerMetadata);
        this.#parts.push({ type: 'call', id, name, arguments: written, opaque });
        break;
      }
      case 'tool-input-delta':
        this.#arguments.set(part.id, (this.#arguments.get(part.id) ?? '') + part.delta);
        break;
      case 'raw':
        this.#takeChunk(part.rawValue);
        break;
    }
  }

  parts(): OriginalPart[] {
    const calls = this.#parts.filter((part) => part.type === 'call');
    for (const [position, call] of calls.entries()) {
      const known = this.#calls.find(({ id }) => id === call.id) ?? this.#calls[position];
      if (known !== undefined && Object.keys(known.members).length > 0) {
        // Replaces what the SDK knows of the members, which is only one of them.
        call.opaque = { openaiCompatible: known.members };
      }
    }
    return this.#parts.filter((part) => part.type === 'call' || part.text !== '' || part.opaque !== null);
  }

  /** Returns the answer so far. */
  answer(): Draft {
    const texts = (wanted: 'text' | 'reasoning'): string[] =>
      this.#parts.flatMap((part) => (part.type === wanted && part.text !== '' ? [part.text] : []));
    return { text: texts('text').join(''), reasoning: texts('reasoning').join('\n\n') };
  }

  /** Members of the whole message. Servers that call the reasoning `reasoning` get it back under that name. */
  message(): OpaqueMembers {
    const isOtherName = this.#reasoning !== '' && !this.#namesReasoningContent;
    return { ...this.#message, ...(isOtherName && { reasoning: this.#reasoning }) };
  }

  /** A chunk of an OpenAI-compatible server; those of others have no `choices`. */
  #takeChunk(chunk: unknown): void {
    const delta = membersOf(jsonAt(jsonList(chunk, 'choices')[0], 'delta'));
    this.#reasoning += jsonText(delta, 'reasoning') ?? '';
    this.#namesReasoningContent ||= jsonText(delta, 'reasoning_content') !== null;
    for (const name of MESSAGE_MEMBERS) {
      const value = delta[name] ?? null;
      if (value !== null) {
        this.#message[name] = joined(this.#message[name], value);
      }
    }
    jsonList(delta, 'tool_calls').forEach((call) => this.#takeCall(call));
  }

  #takeCall(call: unknown): void {
    const id = jsonText(call, 'id');
    const index = jsonNumber(call, 'index');
    // Some servers number all calls 0.
    let known = this.#calls.findLast((entry) => entry.index === index && (id === null || entry.id === id));
    if (known === undefined) {
      known = { index, id, members: {} };
      this.#calls.push(known);
    }
    for (const [name, value] of Object.entries(membersOf(call))) {
      if (!COMMON_CALL_MEMBERS.has(name) && (value ?? null) !== null) {
        known.members[name] = joined(known.members[name], value);
      }
    }
  }
}

/** Anthropic's metadata holds only nulls where there is nothing to say. */
function opaqueFrom(metadata: OpaqueData | undefined): OpaqueData | null {
  const entries = Object.entries(metadata ?? {}).flatMap(([provider, members]) => {
    const given = Object.fromEntries(Object.entries(members).filter(([, value]) => (value ?? null) !== null));
    return Object.keys(given).length > 0 ? [[provider, given] as const] : [];
  });
  return entries.length > 0 ? Object.fromEntries(entries) : null;
}

function membersOf(value: unknown): OpaqueMembers {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function joined(before: Json, value: Json): Json {
  if (Array.isArray(value)) {
    const items: Json[] = Array.isArray(before) ? before : [];
    return value.reduce((all: Json[], item: Json) => withItem(all, item), items);
  }
  return isJsonObject(before) && isJsonObject(value) ? { ...membersOf(before), ...membersOf(value) } : value;
}

/** Pieces of one item follow each other with the same type and index. */
function withItem(items: readonly Json[], item: Json): Json[] {
  const last = membersOf(items.at(-1));
  const next = membersOf(item);
  const index = next['index'] ?? null;
  if (index === null || index !== last['index'] || next['type'] !== last['type']) {
    return [...items, item];
  }
  const texts = STREAMED_TEXTS.flatMap((name) => {
    const [one, other] = [last[name], next[name]];
    return typeof one === 'string' && typeof other === 'string' ? [[name, one + other] as const] : [];
  });
  const given = Object.entries(next).filter(([, value]) => value !== null);
  return [...items.slice(0, -1), { ...last, ...Object.fromEntries(given), ...Object.fromEntries(texts) }];
}

/** Tags in which models that have no member for it put their reasoning, and marks of code. */
const MARK = /<(\/?)(?:think|thinking|thought)>|```|`/gi;

interface Mark {
  kind: 'opening' | 'closing' | 'code';
  start: number;
  end: number;
}

/**
 * Separates reasoning in tags from the answer. Some templates put the opening tag into the prompt, and a cut answer
 * lacks the closing one. Tags in code or quotes are part of the answer.
 */
export function splitThinking(whole: string): Draft {
  const marks = findMarks(whole);
  const text: string[] = [];
  const reasoning: string[] = [];
  const lastClosing = marks.findLastIndex(({ kind }) => kind === 'closing');
  const first = marks.findIndex(({ kind }) => kind !== 'code');
  let from = 0;
  let index = 0;
  const think = (begin: number): void => {
    while (index < marks.length && marks[index]?.kind !== 'closing') {
      index += 1;
    }
    const closing = marks[index];
    reasoning.push(whole.slice(begin, closing?.start));
    from = closing?.end ?? whole.length;
    index += 1;
  };
  if (marks[first]?.kind === 'closing') {
    think(0);
  }
  while (index < marks.length) {
    const mark = marks[index];
    if (mark?.kind === 'code') {
      index = codeEnd(whole, marks, index);
    } else if (mark?.kind === 'opening' && (index < lastClosing || beginsLine(whole, mark.start))) {
      text.push(whole.slice(from, mark.start));
      think(mark.end);
    } else {
      index += 1;
    }
  }
  if (reasoning.length === 0) {
    return { text: whole, reasoning: '' };
  }
  const parts = reasoning.map((part) => part.trim()).filter((part) => part !== '');
  return { text: (text.join('') + whole.slice(from)).trim(), reasoning: parts.join('\n\n') };
}

function findMarks(text: string): Mark[] {
  return [...text.matchAll(MARK)].flatMap(({ 0: match, 1: slash, index: start }): Mark[] => {
    const span = { start, end: start + match.length };
    if (slash === undefined) {
      return [{ kind: 'code', ...span }];
    }
    return /["'`]/.test(text[start - 1] ?? '')
      ? []
      : [{ kind: slash === '' ? 'opening' : 'closing', ...span }];
  });
}

/** The mark behind a code that begins here. An opening mark that nothing closes marks no code. */
function codeEnd(text: string, marks: readonly Mark[], index: number): number {
  const size = lengthOf(marks[index]);
  const isFence = size > 1;
  const lineEnd = text.indexOf('\n', marks[index]?.end);
  const limit = isFence || lineEnd === -1 ? text.length : lineEnd;
  for (let next = index + 1; next < marks.length; next += 1) {
    const mark = marks[next];
    if (mark === undefined || mark.start > limit) {
      break;
    }
    if (mark.kind === 'code' && lengthOf(mark) === size) {
      return next + 1;
    }
  }
  return isFence ? marks.length : index + 1;
}

function lengthOf(mark: Mark | undefined): number {
  return mark === undefined ? 0 : mark.end - mark.start;
}

function beginsLine(text: string, index: number): boolean {
  let before = index - 1;
  while (text[before] === ' ' || text[before] === '\t') {
    before -= 1;
  }
  return before < 0 || text[before] === '\n';
}

/** The response as it must be executed and sent back. The parts' order matters only where some are signed. */
export function toOriginal(response: ModelResponse, origin: string): OriginalResponse {
  const { id, text, parts, message } = response;
  if (parts.some((part) => part.type !== 'call' && part.opaque !== null)) {
    return { id, origin, message, parts };
  }
  // Reasoning in tags within the text is left out, because no server takes it back as a member of its own.
  const reasoning = parts.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
  const texts: OriginalText[] = [
    { type: 'reasoning', text: reasoning.join(''), opaque: null },
    { type: 'text', text, opaque: null },
  ];
  const calls = parts.filter((part) => part.type === 'call');
  return { id, origin, message, parts: [...texts.filter((part) => part.text !== ''), ...calls] };
}

/** One call of a response; the first carries the text and the reasoning before it. An invalid one has no action. */
export function toActionEvent(
  response: ModelResponse,
  call: RequestedCall,
  isFirst: boolean,
  { action, risk }: { action: Action | null; risk: SecurityRisk },
): NewEvent {
  const hasText = isFirst && response.text.trim() !== '';
  return {
    kind: 'ActionEvent',
    source: 'agent',
    thought: hasText ? [{ type: 'text', text: response.text }] : [],
    reasoning_content: isFirst && response.reasoning !== '' ? response.reasoning : null,
    thinking_blocks: [],
    action,
    tool_name: call.name,
    tool_call_id: call.id,
    tool_call: { id: call.id, name: call.name, arguments: call.arguments, origin: 'completion' },
    llm_response_id: response.id,
    security_risk: risk,
  };
}

/** Gives calls ids that are unique in the conversation: small servers number them per response, or send none. */
export function withUniqueIds(response: ModelResponse, taken: ReadonlySet<string>): ModelResponse {
  const seen = new Set(taken);
  const parts = response.parts.map((part) => {
    if (part.type !== 'call') {
      return part;
    }
    const isTaken = part.id === '' || seen.has(part.id);
    const id = isTaken ? `call_${randomUUID().replaceAll('-', '')}` : part.id;
    seen.add(id);
    return { ...part, id };
  });
  const id = response.id === '' || taken.has(response.id) ? randomUUID() : response.id;
  return { ...response, id, calls: callsIn(parts), parts };
}

export function callsIn(parts: readonly OriginalPart[]): RequestedCall[] {
  return parts.flatMap((part) =>
    part.type === 'call' ? [{ id: part.id, name: part.name, arguments: part.arguments }] : [],
  );
}
