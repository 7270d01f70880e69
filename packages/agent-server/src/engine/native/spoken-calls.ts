import { randomUUID } from 'node:crypto';
import { isJsonObject, type JsonObject, parseJson } from '@slipway/common/json-access.js';
import type { EngineHost, OriginalCall } from '../agent-engine.js';
import { reportOnce } from '../limits.js';
import { repairedJson, undressedName } from './call-repair.js';
import type { OfferedTool } from './prompt-filter.js';
import { callsIn, type ModelResponse } from './response-parts.js';
import { parameterNames, parseTextCalls, type TextCall } from './text-tools.js';

/** What the templates of Qwen, Hermes, Kimi, DeepSeek, Mistral, Llama and gpt-oss begin a call with. */
const CALL_MARK =
  /^[ \t]*(<tool_call>|<function=|<\|tool_calls?_(section_)?begin\|>|<｜tool▁calls▁begin｜>|\[TOOL_CALLS\]|<\|python_tag\|>|<\|channel\|>commentary to=functions)/m;

/** Whether an answer has a call that its server, or the model itself, left in the text, outside of code blocks. */
export function hasSpokenCall(text: string): boolean {
  return CALL_MARK.test(text.replaceAll(/^[ \t]*```[^]*?^[ \t]*```/gm, ''));
}

/** Begins the ids of calls that we have read from an answer, so that the log tells them from the model's own. */
const FROM_TEXT = 'text_call_';
const TEXT_CALLS =
  'The model writes its calls of tools into the text of its answers; those that are nothing else are run. Set native_tool_calling to false in the settings of the model, so that it is told how to write them, or give its server the parser of its calls.';

/**
 * An answer that is nothing but calls of offered tools becomes these calls, while the model has made none by itself in
 * this conversation. Calls that stand in other text are quotes and never run.
 */
export async function withSpokenCalls(
  host: EngineHost,
  response: ModelResponse,
  tools: readonly OfferedTool[],
): Promise<ModelResponse> {
  const made = host.events().filter((event) => event.kind === 'ActionEvent');
  const isOwn = made.some((event) => !event.tool_call_id.startsWith(FROM_TEXT));
  if (response.ending !== 'complete' || response.calls.length > 0 || isOwn) {
    return response;
  }
  const calls = await soleCalls(response.text, tools);
  if (calls.length === 0) {
    return response;
  }
  host.showDraft(null);
  if (made.length > 0 && host.settings.llm.parameters?.native_tool_calling !== false) {
    await reportOnce(host, 'TextToolCalls', TEXT_CALLS);
  }
  const parts = [
    ...response.parts.filter(({ type }) => type !== 'text'),
    ...calls.map((call): OriginalCall => {
      const id = `${FROM_TEXT}${randomUUID().replaceAll('-', '').slice(0, 24)}`;
      return { type: 'call', id, ...call, opaque: null };
    }),
  ];
  return { ...response, text: '', parts, calls: callsIn(parts) };
}

const END_MARKS = /(?:\s|<\|(?:eom_id|eot_id|im_end|end|call)\|>|<\/s>)+$/;
const FENCE = /^```[\w-]*[ \t]*\n([^]*)```$/;
const FENCES = /```[\w-]*[ \t]*\n([^]*?)```/g;
const HERMES = /<tool_call>([^]*?)(?:<\/tool_call>|$)/g;
const PYTHON_TAG = /<\|python_tag\|>([^]*?)(?=<\|python_tag\|>|$)/g;
const LLAMA = /<function=([\w.:-]{1,200})>\s*(\{[^]*?\})\s*(?:<\/function>|$)/g;
const MISTRAL_LIST = /\[TOOL_CALLS\]\s*([[{][^]*?)(?=\[TOOL_CALLS\]|$)/g;
const MISTRAL =
  /\[TOOL_CALLS\]\s*([\w.:-]{1,200})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(\{[^]*?)(?=\[TOOL_CALLS\]|$)/g;
const GPT_OSS =
  /(?:<\|start\|>assistant)?<\|channel\|>commentary to=([\w.:-]{1,200})\s*(?:<\|constrain\|>\s*\w+)?<\|message\|>([^]*?)(?:<\|call\|>|$)/g;

/** The calls that are all of an answer; none where anything else stands in it, or a tool is not offered. */
async function soleCalls(answer: string, tools: readonly OfferedTool[]): Promise<TextCall[]> {
  const whole = answer.trim().replace(END_MARKS, '');
  const text = FENCE.exec(whole)?.[1]?.trim() ?? whole;
  const known = new Map(tools.map(({ name, inputSchema }) => [name, parameterNames(inputSchema)]));
  const values = [
    ...[LLAMA, MISTRAL, GPT_OSS].map((form) => namedIn(text, form)),
    ...[HERMES, PYTHON_TAG, MISTRAL_LIST].map((form) =>
      matchesIn(text, form)?.map(([, value = '']) => value),
    ),
    matchesIn(whole, FENCES)?.map(([, value = '']) => value),
    /^[[{]/.test(text) ? [text] : null,
  ].find((found) => found !== null && found !== undefined);
  const calls = (await callsOf(values ?? [])) ?? tagged(text, known);
  const named = calls.map((call) => ({ ...call, name: undressedName(call.name, known) }));
  return named.every(({ name }) => known.has(name)) ? named : [];
}

/** Returns null unless the text consists of matches only. */
function matchesIn(text: string, form: RegExp): RegExpExecArray[] | null {
  const matches = [...text.matchAll(form)];
  return matches.length > 0 && text.replaceAll(form, '').trim() === '' ? matches : null;
}

/** Forms in which the name stands before its arguments. */
function namedIn(text: string, form: RegExp): JsonObject[] | null {
  return matchesIn(text, form)?.map(([, name, args]) => ({ name, arguments: args?.trim() })) ?? null;
}

function tagged(text: string, known: ReadonlyMap<string, readonly string[]>): TextCall[] {
  const { text: rest, calls } = parseTextCalls(text, known);
  const isWhole = calls.every((call) => parseJson(call.arguments) !== undefined);
  return rest === '' && isWhole ? calls : [];
}

/** Returns null unless all values are calls. */
async function callsOf(values: readonly (string | JsonObject)[]): Promise<TextCall[] | null> {
  const read = await Promise.all(
    values.map(async (value) => (typeof value === 'string' ? await readValue(value) : value)),
  );
  const calls = await Promise.all(read.flat().map(async (value: unknown) => await toCall(value)));
  const known = calls.filter((call) => call !== null);
  return known.length > 0 && known.length === calls.length ? known : null;
}

/** Llama puts a semicolon between two calls. */
async function readValue(text: string): Promise<unknown> {
  const parts = text.trim().split(/(?<=\})\s*;\s*(?=\{)/);
  const values = await Promise.all(parts.map(async (part) => await repairedJson(part)));
  return values.flat();
}

const CALL_MEMBERS = new Set(['name', 'arguments', 'parameters', 'type', 'id', 'function']);

async function toCall(value: unknown): Promise<TextCall | null> {
  if (!isJsonObject(value) || !Object.keys(value).every((name) => CALL_MEMBERS.has(name))) {
    return null;
  }
  const { function: nested, name, arguments: given, parameters = given } = value;
  if (isJsonObject(nested)) {
    return await toCall(nested);
  }
  const args = typeof parameters === 'string' ? await repairedJson(parameters) : parameters;
  return typeof name === 'string' && isJsonObject(args) ? { name, arguments: JSON.stringify(args) } : null;
}
