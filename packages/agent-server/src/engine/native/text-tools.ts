import type { LanguageModelMiddleware } from 'ai';
import { randomUUID } from 'node:crypto';
import { isJsonObject } from '@slipway/common/json-access.js';
import { clipText } from '../../clipped-text.js';
import { escapePattern } from '../../secret-masker.js';

type WrapStream = NonNullable<LanguageModelMiddleware['wrapStream']>;
type CallOptions = Parameters<WrapStream>[0]['params'];
type Message = CallOptions['prompt'][number];
type UserMessage = Extract<Message, { role: 'user' }>;
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;
type ResultPart = Extract<ToolMessage['content'][number], { type: 'tool-result' }>;
type Offered = NonNullable<CallOptions['tools']>[number];
type StreamPart = Awaited<ReturnType<WrapStream>>['stream'] extends ReadableStream<infer Part> ? Part : never;

/** Serves models without function calling: tools are described in the system prompt, called and answered in text. */
export function textTools({ stop }: { stop: boolean }): LanguageModelMiddleware {
  return {
    specificationVersion: 'v4',
    wrapStream: async ({ params, model }) => {
      const { tools = [], toolChoice, prompt, ...rest } = params;
      const offered = toolChoice?.type === 'none' ? [] : tools.filter((tool) => tool.type === 'function');
      const { stream, ...result } = await model.doStream({
        ...rest,
        prompt: toTextPrompt(prompt, offered),
        // Not the closing tag of a call: it may be part of a file that the model writes.
        ...(stop && offered.length > 0 && { stopSequences: [...(rest.stopSequences ?? []), RESULT_MARK] }),
      });
      const known = new Map(offered.map(({ name, inputSchema }) => [name, parameterNames(inputSchema)]));
      return { ...result, stream: offered.length === 0 ? stream : stream.pipeThrough(callsFromText(known)) };
    },
  };
}

type FunctionTool = Extract<Offered, { type: 'function' }>;

export function parameterNames({ properties }: { properties?: unknown }): string[] {
  return isJsonObject(properties) ? Object.keys(properties) : [];
}

/** Chat templates take user and agent in turns, so messages of the user that follow each other are joined. */
function toTextPrompt(prompt: readonly Message[], tools: readonly FunctionTool[]): Message[] {
  const system = prompt[0]?.role === 'system' ? prompt[0] : null;
  const parts = [system?.content ?? '', tools.length > 0 ? toolInstructions(tools) : ''];
  const content = parts.filter((part) => part !== '').join('\n\n');
  const messages: Message[] = content === '' ? [] : [{ ...system, role: 'system', content }];
  for (const message of prompt.slice(system === null ? 0 : 1)) {
    const own = message.role === 'assistant' ? fromAssistant(message) : message;
    const converted = own.role === 'tool' ? fromResults(own) : own;
    const last = messages.at(-1);
    if (last?.role === 'user' && converted.role === 'user') {
      messages[messages.length - 1] = { ...last, content: [...last.content, ...converted.content] };
    } else {
      messages.push(converted);
    }
  }
  return messages;
}

function fromAssistant({ content, ...message }: AssistantMessage): AssistantMessage {
  const texts = content.flatMap((part) => {
    const call = part.type === 'tool-call' ? [textOfCall(part.toolName, part.input)] : [];
    return part.type === 'text' ? [part.text] : call;
  });
  const others = content.filter(({ type }) => !['text', 'tool-call', 'tool-result'].includes(type));
  const text = texts.join('\n\n');
  return { ...message, content: text === '' ? others : [...others, { type: 'text', text }] };
}

function fromResults({ content, ...message }: ToolMessage): UserMessage {
  const parts = content.flatMap((part) =>
    part.type === 'tool-result'
      ? [{ type: 'text' as const, text: `${RESULT_MARK}${part.toolName}]:\n${resultText(part.output)}` }]
      : [],
  );
  return { ...message, role: 'user', content: parts };
}

/** Our results are texts. */
function resultText(output: ResultPart['output']): string {
  return output.type === 'text' || output.type === 'error-text' ? output.value : JSON.stringify(output);
}

/** Member of a raw part that has a piece of such text. */
export const HELD_BACK = 'slipway_held_back';

/** Holds the text back until the answer is complete, because only then it is known what is a call. */
function callsFromText(tools: KnownTools): TransformStream<StreamPart, StreamPart> {
  let whole = '';
  return new TransformStream<StreamPart, StreamPart>({
    transform: (part, controller) => {
      switch (part.type) {
        case 'text-start':
        case 'text-end':
          return;
        case 'text-delta':
          whole += part.delta;
          controller.enqueue({ type: 'raw', rawValue: { [HELD_BACK]: part.delta } });
          return;
        case 'finish': {
          const answer = parseTextCalls(whole, tools);
          answerParts(answer).forEach((each) => controller.enqueue(each));
          const isCalling = answer.calls.length > 0 && part.finishReason.unified === 'stop';
          const finishReason = { ...part.finishReason, ...(isCalling && { unified: 'tool-calls' as const }) };
          controller.enqueue({ ...part, finishReason });
          return;
        }
        default:
          controller.enqueue(part);
      }
    },
  });
}

function answerParts({ text, calls }: ParsedAnswer): StreamPart[] {
  const id = randomUUID();
  const said: StreamPart[] =
    text === ''
      ? []
      : [
          { type: 'text-start', id },
          { type: 'text-delta', id, delta: text },
          { type: 'text-end', id },
        ];
  return [
    ...said,
    ...calls.flatMap(({ name: toolName, arguments: input }): StreamPart[] => {
      const toolCallId = `call_${randomUUID()}`;
      return [
        { type: 'tool-input-start', id: toolCallId, toolName },
        { type: 'tool-input-delta', id: toolCallId, delta: input },
        { type: 'tool-input-end', id: toolCallId },
        { type: 'tool-call', toolCallId, toolName, input },
      ];
    }),
  ];
}

/** What begins the result of a call. Models trained on this form of calls know it. */
const RESULT_MARK = 'EXECUTION RESULT of [';
const MAX_INCOMPLETE = 2_000;

/** A call is no part of a sentence: one in quotes is only spoken of. */
const CALL = /(?<!["'`])<function(?:=|\s+(?:name=)?)["']?([^\s"'<>=]{1,200})["']?\s*>/g;
const PARAMETER = /<parameter(?:=|\s+(?:name=)?)["']?([^\s"'<>=]{1,200})["']?\s*>/g;
const PARAMETER_MARK = /<parameter(?:=|\s+(?:name=)?)["']?[^\s"'<>=]{1,200}["']?\s*>|<\/parameter>/g;
const AFTER_VALUE = /\s*(?:<parameter[=\s]|<\/?function|<\/?tool_call>|$)/y;
const CALL_END = /\s*<\/function\s*>?(?:\s*<\/tool_call>)?/y;
const THINKING = /^\s*<(think|thinking|thought)>/i;

export interface TextCall {
  name: string;
  /** JSON, or the beginning of the call as it was written, where it breaks off. */
  arguments: string;
}

interface ParsedAnswer {
  text: string;
  calls: TextCall[];
}

type KnownTools = ReadonlyMap<string, readonly string[]>;

/**
 * Finds calls of the form `<function=name><parameter=x>…</parameter></function>`. Values are not escaped and may
 * hold such tags; the last closing tags may be missing. What follows an invented result is left out.
 */
export function parseTextCalls(whole: string, tools: KnownTools): ParsedAnswer {
  const begin = endOfThinking(whole);
  const text: string[] = [whole.slice(0, begin)];
  const calls: TextCall[] = [];
  let from = begin;
  while (from < whole.length) {
    const invented = calls.length === 0 ? -1 : whole.indexOf(RESULT_MARK, from);
    const end = invented === -1 ? whole.length : invented;
    const opening = firstMatch(CALL, whole, from);
    if (opening === null || opening.index >= end) {
      text.push(whole.slice(from, end));
      break;
    }
    text.push(whole.slice(from, opening.index).replace(/<tool_call>\s*$/, ''));
    const { call, end: after } = parseCall(whole, opening, tools);
    calls.push(call);
    from = after;
  }
  return { text: calls.length === 0 ? whole : withoutFences(text).join('').trim(), calls };
}

/** Calls that a model only thinks about are not made. */
function endOfThinking(whole: string): number {
  const [, tag] = THINKING.exec(whole) ?? [];
  if (tag === undefined) {
    return 0;
  }
  const end = whole.toLowerCase().indexOf(`</${tag.toLowerCase()}>`);
  return end === -1 ? whole.length : end + tag.length + 3;
}

/** Some models put a call between the marks of a code block. */
function withoutFences(parts: readonly string[]): string[] {
  return parts.map((part, index) => {
    const before = index < parts.length - 1 ? part.replace(/(^|\n)```\w*\s*$/, '$1') : part;
    return index === 0 ? before : before.replace(/^\s*```(?=\s|$)/, '');
  });
}

function parseCall(
  whole: string,
  { index, 0: begin, 1: name = '' }: RegExpExecArray,
  tools: KnownTools,
): { call: TextCall; end: number } {
  const values = new Map<string, string>();
  let from = index + begin.length;
  for (;;) {
    const opening = firstMatch(PARAMETER, whole, from);
    if (opening === null || whole.slice(from, opening.index).trim() !== '') {
      break;
    }
    const [tag, parameter = ''] = opening;
    const start = opening.index + tag.length;
    const value = valueAt(
      whole,
      start,
      (tools.get(name) ?? []).filter((known) => !values.has(known)),
    );
    if (value === null) {
      // Nothing says where the value ends, so it may not be whole.
      const written = clipText(whole.slice(index), MAX_INCOMPLETE);
      return { call: { name, arguments: written }, end: whole.length };
    }
    values.set(parameter, withoutLineBreaks(whole.slice(start, value.end)));
    from = value.after;
  }
  const [closing = ''] = firstMatch(CALL_END, whole, from) ?? [];
  const call = { name, arguments: JSON.stringify(Object.fromEntries(values)) };
  return { call, end: from + closing.length };
}

/** @param others parameters that may follow, in case the closing tag is missing */
function valueAt(
  whole: string,
  start: number,
  others: readonly string[],
): { end: number; after: number } | null {
  const closing = closingTag(whole, start);
  const next = others
    .map((name) =>
      whole.slice(start, closing?.end).search(new RegExp(`\\n<parameter=${escapePattern(name)}>`)),
    )
    .filter((position) => position !== -1);
  if (next.length > 0 && closing?.isBalanced !== true) {
    const end = start + Math.min(...next);
    return { end, after: end };
  }
  if (closing !== null) {
    return { end: closing.end, after: closing.end + '</parameter>'.length };
  }
  const after = whole.indexOf('</function', start);
  const isOnOneLine = !/^\r?\n/.test(whole.slice(start, start + 2));
  return after === -1 ? null : { end: isOnOneLine && whole[after - 1] === '\n' ? after - 1 : after, after };
}

/** The tag that closes a value: the first behind which the call goes on, preferably one that no tag in it opens. */
function closingTag(whole: string, start: number): { end: number; isBalanced: boolean } | null {
  let depth = 0;
  let first: number | null = null;
  PARAMETER_MARK.lastIndex = start;
  for (let mark = PARAMETER_MARK.exec(whole); mark !== null; mark = PARAMETER_MARK.exec(whole)) {
    if (mark[0].startsWith('</')) {
      AFTER_VALUE.lastIndex = PARAMETER_MARK.lastIndex;
      if (AFTER_VALUE.test(whole)) {
        if (depth === 0) {
          return { end: mark.index, isBalanced: true };
        }
        first ??= mark.index;
      }
      depth = Math.max(depth - 1, 0);
    } else {
      depth += 1;
    }
  }
  return first === null ? null : { end: first, isBalanced: false };
}

/** A value of several lines begins and ends on lines of its own. */
function withoutLineBreaks(value: string): string {
  return /^\r?\n/.test(value) ? value.replace(/^\r?\n/, '').replace(/\r?\n$/, '') : value;
}

function firstMatch(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

export function textOfCall(name: string, args: unknown): string {
  const parameters = Object.entries(isJsonObject(args) ? args : {}).map(([parameter, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const shown = /[\r\n]/.test(text) ? `\n${text}\n` : text;
    return `<parameter=${parameter}>${shown}</parameter>\n`;
  });
  return `<function=${name}>\n${parameters.join('')}</function>`;
}

function toolInstructions(
  tools: readonly { name: string; description?: string | undefined; inputSchema: unknown }[],
): string {
  const list = tools.map(
    ({ name, description, inputSchema }) =>
      `<tool name="${name}">\n${description ?? ''}\nParameters as JSON schema: ${JSON.stringify(inputSchema)}\n</tool>`,
  );
  return `# Tools
You call a tool by writing its call as text, in exactly this form, on lines of its own:

<function=name_of_the_tool>
<parameter=name_of_a_parameter>value</parameter>
<parameter=name_of_another>
a value of
several lines
</parameter>
</function>

- Give every required parameter. Write values as they are, without escapes; lists and objects as JSON.
- Explain before a call, never after it: end your answer with </function>. The result comes as the next message.
- Never write a result yourself. An answer without a call ends your work.

These are the tools:

${list.join('\n\n')}`;
}
