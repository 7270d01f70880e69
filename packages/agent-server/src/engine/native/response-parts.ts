import type { TextStreamPart, ToolSet } from 'ai';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { isJsonObject } from '@slipway/common/json-merge.js';
import type { OpaqueMembers, OpaqueData, OriginalCall, OriginalPart, OriginalText } from '../agent-engine.js';

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
        const opaque = opaqueFrom(providerMetadata);
        this.#parts.push({ type: 'call', id, name, arguments: JSON.stringify(input), opaque });
        break;
      }
      case 'raw':
        this.#takeChunk(part.rawValue);
        break;
    }
  }

  /** @returns the parts with the opaque data of each, without empty ones */
  parts(): OriginalPart[] {
    const calls = this.#parts.filter((part) => part.type === 'call');
    calls.forEach((call, position) => addMembers(call, this.#membersOf(call, position)));
    return this.#parts.filter((part) => part.type === 'call' || part.text !== '' || part.opaque !== null);
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

  #membersOf(call: OriginalCall, position: number): OpaqueMembers {
    const known = this.#calls.find(({ id }) => id === call.id) ?? this.#calls[position];
    return known?.members ?? {};
  }
}

/** In place of what the SDK has of them: it knows only one of these members. */
function addMembers(call: OriginalCall, members: OpaqueMembers): void {
  if (Object.keys(members).length > 0) {
    call.opaque = { openaiCompatible: members };
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
