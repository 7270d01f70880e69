import { hash } from 'node:crypto';
import type {
  AssistantModelMessage,
  ModelMessage,
  ToolCallPart,
  ToolModelMessage,
  ToolResultPart,
  UserModelMessage,
} from 'ai';
import { jsonList, isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { cleanJson, cleanText, isBlank, textHead } from '@slipway/common/well-formed-text.js';
import { cleanToolName } from '../../tools/tool.js';
import { repairedSchema } from '../../tools/tool-schema.js';
import { UNKNOWN_RESULT } from '../agent-events.js';
import {
  ImageAllowance,
  imagePart,
  imagesIn,
  type LeftOutImages,
  type ModelTarget,
  type TargetRules,
  targetRules,
} from './prompt-limits.js';

export interface OfferedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

const BEGINNING_LEFT_OUT = '(The beginning of this conversation was left out.)';
const GO_ON = 'Go on.';

interface FilteredPrompt {
  /** Undefined: a blank text is refused. */
  instructions: string | undefined;
  messages: ModelMessage[];
  tools: OfferedTool[];
}

interface UnfilteredPrompt {
  instructions: string;
  messages: readonly ModelMessage[];
  tools: readonly OfferedTool[];
  leftOutImages?: LeftOutImages;
}

type AssistantPart = Exclude<AssistantModelMessage['content'], string>[number];
type ProviderOptions = NonNullable<AssistantModelMessage['providerOptions']>;

type UserPart = Exclude<UserModelMessage['content'], string>[number];

/** Whatever the log has, the server gets a prompt that it accepts. A correct prompt passes unchanged. */
export function filterPrompt(prompt: UnfilteredPrompt, target: ModelTarget): FilteredPrompt {
  const rules = targetRules(target);
  const messages = withImages(prompt.messages, rules, prompt.leftOutImages ?? 'none');
  return {
    instructions: isBlank(prompt.instructions) ? undefined : cleanText(prompt.instructions),
    messages: inTurns(pairedCalls(messages, rules), rules),
    tools: cleanTools(prompt.tools, rules),
  };
}

function cleanTools(tools: readonly OfferedTool[], { maxDescription, isGoogle }: TargetRules): OfferedTool[] {
  const byName = new Map<string, OfferedTool>();
  for (const { name, description, inputSchema } of tools) {
    const clean = cleanToolName(name);
    if (!byName.has(clean)) {
      byName.set(clean, {
        name: clean,
        description: textHead(cleanText(description), maxDescription),
        inputSchema: isGoogle ? googleSchema(repairedSchema(inputSchema)) : repairedSchema(inputSchema),
      });
    }
  }
  return [...byName.values()];
}

function withImages(
  messages: readonly ModelMessage[],
  rules: TargetRules,
  leftOut: LeftOutImages,
): ModelMessage[] {
  const limits = { allowance: new ImageAllowance(rules, imagesIn(messages).all), leftOut };
  return messages
    .toReversed()
    .map((message) => {
      if (message.role !== 'user' || typeof message.content === 'string') {
        return message;
      }
      const content = message.content.map((part) =>
        part.type === 'text' ? part : imagePart(part.type === 'file' ? part.data : part.image, rules, limits),
      );
      return { ...message, content };
    })
    .toReversed();
}

/** Every call with exactly one result right behind it, and no result without a call. */
function pairedCalls(messages: readonly ModelMessage[], rules: TargetRules): ModelMessage[] {
  const toId = uniqueIds(rules.callId);
  const filtered: ModelMessage[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') {
      filtered.push(...cleanUser(message));
    } else if (message.role === 'assistant') {
      filtered.push(...cleanResponse(message, resultsBehind(messages, index), toId, rules));
    }
  }
  return filtered;
}

function cleanUser(message: UserModelMessage): UserModelMessage[] {
  const clean = partsOf(message).flatMap((part): UserPart[] =>
    part.type === 'text' ? cleanTextPart(part) : [part],
  );
  return clean.length === 0 ? [] : [{ role: 'user', content: clean }];
}

function cleanTextPart<P extends { text: string }>(part: P): P[] {
  const text = cleanText(part.text);
  return isBlank(text) ? [] : [{ ...part, text }];
}

function resultsBehind(messages: readonly ModelMessage[], index: number): ToolResultPart[] {
  const results: ToolResultPart[] = [];
  for (const message of messages.slice(index + 1)) {
    if (message.role !== 'tool') {
      break;
    }
    results.push(...message.content.filter((part) => part.type === 'tool-result'));
  }
  return results;
}

function cleanResponse(
  { content, providerOptions }: AssistantModelMessage,
  results: readonly ToolResultPart[],
  toId: (id: string) => string,
  rules: TargetRules,
): ModelMessage[] {
  const parts: AssistantPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const answers: ToolResultPart[] = [];
  const left = [...results];
  const clean = parts.flatMap((part): AssistantPart[] => {
    if (part.type === 'text') {
      return cleanTextPart({ type: part.type, text: part.text, ...opaque(part.providerOptions) });
    }
    if (part.type === 'reasoning') {
      // A signature is for exactly this text; redacted reasoning has none.
      const { type, text } = part;
      const signature = opaque(part.providerOptions);
      const isSigned = 'providerOptions' in signature && cleanText(text) === text;
      return isSigned ? [{ type, text, ...signature }] : cleanTextPart({ type, text });
    }
    if (part.type !== 'tool-call') {
      return [];
    }
    const found = left.findIndex(({ toolCallId }) => toolCallId === part.toolCallId);
    const [result] = found === -1 ? [] : left.splice(found, 1);
    const id = toId(part.toolCallId);
    const toolName = cleanToolName(part.toolName);
    answers.push({ type: 'tool-result', toolCallId: id, toolName, output: cleanOutput(result) });
    return [cleanCall(part, id, rules)];
  });
  // Reasoning alone is no message.
  if (!clean.some(({ type }) => type !== 'reasoning')) {
    return [];
  }
  const response: AssistantModelMessage = { role: 'assistant', content: clean, ...opaque(providerOptions) };
  const tool: ToolModelMessage = { role: 'tool', content: answers };
  return answers.length === 0 ? [response] : [response, tool];
}

/** Opaque data is sent whole or not at all; the reasoning that some servers keep beside it is text. */
function opaque(options: ProviderOptions = {}): { providerOptions?: ProviderOptions } {
  const clean = Object.entries(options).flatMap(([provider, members]) => {
    const kept = Object.entries(members).flatMap(([name, value]) => {
      if (name === 'reasoning' && typeof value === 'string') {
        return [[name, cleanText(value)] as const];
      }
      const member = { [name]: value };
      return JSON.stringify(cleanJson(member)) === JSON.stringify(member) ? [[name, value] as const] : [];
    });
    return kept.length === 0 ? [] : [[provider, Object.fromEntries(kept)] as const];
  });
  return clean.length === 0 ? {} : { providerOptions: Object.fromEntries(clean) };
}

function cleanCall(part: ToolCallPart, id: string, { foreignCall }: TargetRules): ToolCallPart {
  const own = opaque(part.providerOptions);
  const foreign = foreignCall === null ? {} : { providerOptions: { openaiCompatible: foreignCall } };
  return {
    type: 'tool-call',
    toolCallId: id,
    toolName: cleanToolName(part.toolName),
    input: cleanJson(part.input),
    ...('providerOptions' in own ? own : foreign),
  };
}

function cleanOutput(result: ToolResultPart | undefined): ToolResultPart['output'] {
  if (result === undefined) {
    return { type: 'error-text', value: UNKNOWN_RESULT };
  }
  const { output } = result;
  if (output.type !== 'text' && output.type !== 'error-text') {
    return output;
  }
  const value = cleanText(output.value);
  return { type: output.type, value: isBlank(value) ? '(no output)' : value };
}

// The first and the last message are the user's, or a tool's result: newer models refuse to continue their own. For a
// strict chat template, messages of one side become one, or get one of the other side between.
function inTurns(messages: readonly ModelMessage[], { alternates }: TargetRules): ModelMessage[] {
  const turns = alternates ? alternating(messages) : [...messages];
  if (turns[0]?.role !== 'user') {
    turns.unshift({ role: 'user', content: [{ type: 'text', text: BEGINNING_LEFT_OUT }] });
  }
  if (turns.at(-1)?.role === 'assistant') {
    turns.push({ role: 'user', content: [{ type: 'text', text: GO_ON }] });
  }
  return turns.map((message) => (message.role === 'user' ? withOneText(message) : message));
}

function alternating(messages: readonly ModelMessage[]): ModelMessage[] {
  const turns: ModelMessage[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.role === 'user' && message.role === 'user') {
      turns.splice(-1, 1, { role: 'user', content: [...partsOf(last), ...partsOf(message)] });
      continue;
    }
    if (last?.role === 'assistant' && message.role === 'assistant') {
      turns.push({ role: 'user', content: [{ type: 'text', text: GO_ON }] });
    } else if (last?.role === 'tool' && message.role === 'user') {
      turns.push({ role: 'assistant', content: [{ type: 'text', text: 'Done.' }] });
    }
    turns.push(message);
  }
  return turns;
}

/** Servers without images take one text only. */
function withOneText(message: UserModelMessage): UserModelMessage {
  const parts = partsOf(message);
  return parts.every((part) => part.type === 'text')
    ? { role: 'user', content: parts.map(({ text }) => text).join('\n\n') }
    : message;
}

function partsOf({ content }: UserModelMessage): UserPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** Ids of calls: a valid one is kept the first time; the others are replaced, always by the same ones. */
function uniqueIds(valid: RegExp): (id: string) => string {
  const used = new Set<string>();
  return (id) => {
    let free = id;
    for (let count = 1; !valid.test(free) || used.has(free); count += 1) {
      free = hash('sha256', `${id} ${count}`).slice(0, 9);
    }
    used.add(free);
    return free;
  };
}

/** Keywords that Google's API knows; it refuses a schema with any other. */
const GOOGLE_KEYWORD =
  /^(type|title|description|nullable|(min|max)(Length|Items|Properties|imum)|pattern|required)$/;

/** A repaired schema in the words of Google's API; what it has no word for is told in the description. */
export function googleSchema(schema: unknown): JsonObject {
  if (!isJsonObject(schema)) {
    return {};
  }
  const { properties, items, anyOf, enum: values, format, ...own } = schema;
  const parts = jsonList(schema, 'allOf').map((part) => googleSchema(part));
  const texts = Array.isArray(values) ? values.map((value: unknown) => JSON.stringify(value)) : [];
  const areTexts =
    Array.isArray(values) && values.every((value) => typeof value === 'string' && value !== '');
  const notes = [
    schema['description'],
    areTexts || texts.length === 0 ? null : `One of ${texts.join(', ')}.`,
    typeof format === 'string' && format !== 'date-time' ? `Format: ${format}.` : null,
  ].filter((note) => typeof note === 'string' && note !== '');
  return {
    ...Object.assign({}, ...parts),
    ...Object.fromEntries(Object.entries(own).filter(([name]) => GOOGLE_KEYWORD.test(name))),
    ...(notes.length > 0 && { description: notes.join(' ') }),
    ...(areTexts && { type: 'string', enum: values }),
    ...(format === 'date-time' && { format }),
    ...(isJsonObject(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, value]) => [name, googleSchema(value)]),
      ),
    }),
    ...(items !== undefined && { items: googleSchema(items) }),
    ...(anyOf !== undefined && { anyOf: jsonList(schema, 'anyOf').map((part) => googleSchema(part)) }),
  };
}
