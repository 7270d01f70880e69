import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { at, duplicateNames, first, textProblem, toolProblem } from './model-limits.js';
import type { ChatBody, ChatMessage } from './scripted-llm.js';
import type { ScriptedAnswer } from './scripted-llm.answers.js';
import { pieces, usageOf } from './scripted-llm.wire.js';

/*
 * OpenAI's Responses API, as its reference and the recorded streams in github.com/vercel/ai
 * (packages/openai/src/responses/__fixtures__) have it.
 */

type Spoken = Extract<ScriptedAnswer, { kind: 'answer' | 'cut' | 'stall' | 'streamError' }>;
type Item = Record<string, unknown>;

/** A request of this API in the words of the other, so that one script serves both. */
export function asChatBody(body: object): ChatBody {
  const instructions = jsonText(body, 'instructions');
  return {
    model: jsonText(body, 'model') ?? '',
    stream: jsonAt(body, 'stream') === true,
    tool_choice: jsonAt(body, 'tool_choice'),
    messages: [
      ...(instructions === null ? [] : [{ role: 'system' as const, content: instructions }]),
      ...jsonList(body, 'input').flatMap((item) => asMessage(item)),
    ],
    tools: jsonList(body, 'tools').map((tool) => ({
      function: {
        name: jsonText(tool, 'name') ?? '',
        parameters: Object(jsonAt(tool, 'parameters')),
      },
    })),
  };
}

function asMessage(item: unknown): ChatMessage[] {
  const id = jsonText(item, 'call_id') ?? '';
  switch (jsonText(item, 'type') ?? 'message') {
    case 'function_call': {
      const call = { name: jsonText(item, 'name') ?? '', arguments: jsonText(item, 'arguments') ?? '' };
      return [{ role: 'assistant', tool_calls: [{ id, type: 'function', function: call }] }];
    }
    case 'function_call_output':
      return [{ role: 'tool', tool_call_id: id, content: jsonText(item, 'output') ?? '' }];
    case 'message': {
      const role = jsonText(item, 'role') === 'assistant' ? 'assistant' : 'user';
      const content = jsonAt(item, 'content');
      return [
        { role, content: typeof content === 'string' ? content : jsonList(item, 'content').map(asPart) },
      ];
    }
    default:
      return [];
  }
}

function asPart(part: unknown): { type: string; text?: string } {
  return { type: jsonText(part, 'type') ?? '', text: jsonText(part, 'text') ?? undefined };
}

/** What the model thought, which its server alone can read: what an item begins with is not what it ends with. */
export function sealed(id: string, when: 'begun' | 'done' = 'done'): string {
  return `gAAA-${when}-${id}`;
}

/** The events of a streamed answer. An answer that ends with '' has no last event. */
export function responseEvents(answer: Spoken, body: object, index: number): Item[] {
  const { model, messages } = asChatBody(body);
  const includes = jsonList(body, 'include').includes('reasoning.encrypted_content');
  const items = itemsOf(answer, index, includes, jsonText(body, 'reasoning', 'summary') !== null);
  const response = (status: string, members: Item = {}): Item => ({
    id: `resp_${index}`,
    object: 'response',
    created_at: 1_700_000_000,
    status,
    error: null,
    incomplete_details: null,
    model,
    output: [],
    // It repeats what it was asked.
    ...Object.fromEntries(ECHOED.map((name) => [name, jsonAt(body, name) ?? null])),
    tools: jsonList(body, 'tools'),
    metadata: {},
    parallel_tool_calls: true,
    store: jsonAt(body, 'store') ?? true,
    temperature: 1,
    top_p: 1,
    usage: null,
    ...members,
  });
  const events: Item[] = [
    { type: 'response.created', response: response('in_progress') },
    { type: 'response.in_progress', response: response('in_progress') },
    ...items.flatMap((item, position) => eventsOf(item, position, answer.kind === 'answer')),
  ];
  if (answer.kind === 'streamError') {
    const members = Object(jsonAt(answer.error, 'response'));
    const isFailed = jsonText(answer.error, 'type') === 'response.failed';
    events.push({ ...Object(answer.error), ...(isFailed && { response: response('failed', members) }) });
  } else if (answer.kind === 'answer' && answer.finish !== '') {
    events.push(lastEvent(answer, response, { output: items, usage: usageIn(answer, { model, messages }) }));
  }
  return events.map((event, sequence) => ({ ...event, sequence_number: sequence }));
}

/** The same in one piece. */
export function wholeResponse(answer: Spoken, body: object, index: number): unknown {
  return jsonAt(responseEvents(answer, body, index).at(-1), 'response');
}

function itemsOf(answer: Spoken, index: number, includes: boolean, summarizes: boolean): Item[] {
  const said = answer.kind === 'answer' ? answer : { text: answer.text };
  const reasoning = 'reasoning' in said ? said.reasoning : undefined;
  const calls = ('calls' in said ? said.calls : undefined) ?? [];
  const texts = summarizes ? (reasoning ?? '').split('\n\n') : [];
  return [
    ...(reasoning === undefined
      ? []
      : [
          {
            id: `rs_${index}`,
            type: 'reasoning',
            encrypted_content: includes ? sealed(`rs_${index}`) : null,
            summary: texts.map((text) => ({ type: 'summary_text', text })),
          },
        ]),
    ...(said.text === undefined
      ? []
      : [
          {
            id: `msg_${index}`,
            type: 'message',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text: said.text, annotations: [], logprobs: [] }],
          },
        ]),
    ...calls.map(({ id, name, arguments: args }, position) => ({
      id: `fc_${index}_${position}`,
      type: 'function_call',
      status: 'completed',
      call_id: id ?? `call_${index}_${position}`,
      name,
      arguments: typeof args === 'string' ? args : JSON.stringify(args),
    })),
  ];
}

function eventsOf(item: Item, position: number, isEnded: boolean): Item[] {
  const where = { item_id: item['id'], output_index: position };
  const deltas = (type: string, text: string, members: Item = {}): Item[] =>
    pieces(text).map((delta) => ({ type, delta, obfuscation: 'x', ...where, ...members }));
  const added = (members: Item): Item => ({
    type: 'response.output_item.added',
    output_index: position,
    item: { ...item, ...members },
  });
  const done: Item = { type: 'response.output_item.done', output_index: position, item };
  if (item['type'] === 'reasoning') {
    const begun = item['encrypted_content'] === null ? null : sealed(String(item['id']), 'begun');
    return [
      added({ summary: [], encrypted_content: begun }),
      ...jsonList(item, 'summary').flatMap((part, summary): Item[] => {
        const place = { ...where, summary_index: summary };
        const type = 'response.reasoning_summary_text';
        return [
          {
            type: 'response.reasoning_summary_part.added',
            part: { type: 'summary_text', text: '' },
            ...place,
          },
          ...deltas(`${type}.delta`, jsonText(part, 'text') ?? '', place),
          { type: `${type}.done`, text: jsonText(part, 'text'), ...place },
          { type: 'response.reasoning_summary_part.done', part, ...place },
        ];
      }),
      done,
    ];
  }
  if (item['type'] === 'function_call') {
    const text = String(item['arguments']);
    return [
      added({ arguments: '', status: 'in_progress' }),
      ...deltas('response.function_call_arguments.delta', text),
      { type: 'response.function_call_arguments.done', arguments: text, ...where },
      done,
    ];
  }
  const [part] = jsonList(item, 'content');
  const place = { ...where, content_index: 0 };
  const text = jsonText(part, 'text') ?? '';
  return [
    added({ content: [], status: 'in_progress' }),
    {
      type: 'response.content_part.added',
      part: { type: 'output_text', text: '', annotations: [], logprobs: [] },
      ...place,
    },
    ...deltas('response.output_text.delta', text, { content_index: 0, logprobs: [] }),
    ...(isEnded
      ? [
          { type: 'response.output_text.done', text, logprobs: [], ...place },
          { type: 'response.content_part.done', part, ...place },
          done,
        ]
      : []),
  ];
}

const INCOMPLETE = new Map([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
]);

const ECHOED = ['instructions', 'max_output_tokens', 'reasoning', 'text', 'tool_choice'];

function lastEvent(
  answer: Extract<Spoken, { kind: 'answer' }>,
  response: (status: string, members: Item) => Item,
  members: Item,
): Item {
  const reason = INCOMPLETE.get(answer.finish ?? '');
  return reason === undefined
    ? { type: 'response.completed', response: response('completed', members) }
    : {
        type: 'response.incomplete',
        response: response('incomplete', { ...members, incomplete_details: { reason } }),
      };
}

function usageIn(
  answer: Extract<Spoken, { kind: 'answer' }>,
  asked: Pick<ChatBody, 'model' | 'messages'>,
): Item {
  const { prompt_tokens, completion_tokens, total_tokens } = usageOf(answer, asked);
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: answer.usage?.cachedTokens ?? 0, cache_write_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens,
  };
}

/** What an API refuses, and by what words and codes. */
export interface Refused {
  message: string;
  param?: string;
  code?: string;
}

/** The members of a body (developers.openai.com/api/reference/resources/responses/methods/create). */
const RESPONSES_MEMBERS =
  /^(background|context_management|conversation|include|input|instructions|max_output_tokens|max_tool_calls|metadata|model|parallel_tool_calls|previous_response_id|prompt|prompt_cache_(key|options|retention)|reasoning|safety_identifier|service_tier|store|stream|stream_options|temperature|text|tool_choice|tools|top_logprobs|top_p|truncation|user)$/;
/** The others reason: they have no temperature (vercel/ai, __fixtures__/reasoning-model-temperature-error.json). */
const NOT_REASONING = /^gpt-[34]|-chat/;
/** Served by vLLM and the like, which take all of them. */
const OF_OTHERS = /^qwen/;

/** What OpenAI's Responses API refuses in a body, or null. */
export function responsesRefusal(body: object): Refused | null {
  const input = jsonList(body, 'input');
  const reasons = !NOT_REASONING.test(jsonText(body, 'model') ?? '');
  const problems: (Refused | null)[] = [
    wrong(textProblem(body)),
    ...Object.keys(body).map((name) =>
      RESPONSES_MEMBERS.test(name)
        ? null
        : { message: `Unknown parameter: '${name}'.`, param: name, code: 'unknown_parameter' },
    ),
    ...['temperature', 'top_p'].map((param) =>
      reasons && !OF_OTHERS.test(jsonText(body, 'model') ?? '') && jsonAt(body, param) !== undefined
        ? { message: `Unsupported parameter: '${param}' is not supported with this model.`, param }
        : null,
    ),
    // microsoft/agent-framework#7483
    !reasons && jsonList(body, 'include').includes('reasoning.encrypted_content')
      ? { message: 'Encrypted content is not supported with this model.', param: 'include' }
      : null,
    !reasons && jsonAt(body, 'reasoning') !== undefined
      ? {
          message: "Unsupported parameter: 'reasoning' is not supported with this model.",
          param: 'reasoning',
        }
      : null,
    wrong(input.length === 0 ? 'Missing required parameter: input.' : null),
    ...input.map((item, index) => itemProblem(item, index, input, jsonAt(body, 'store') !== false)),
    wrong(callsProblem(input)),
    ...jsonList(body, 'tools').map((tool, index) =>
      wrong(at(`tools[${index}]`, first([toolProblem(tool, 'parameters'), strictProblem(tool)]))),
    ),
    wrong(duplicateNames(jsonList(body, 'tools').map((tool) => jsonText(tool, 'name')))),
  ];
  return problems.find((problem) => problem !== null) ?? null;
}

function wrong(problem: string | null): Refused | null {
  return problem === null ? null : { message: problem, param: 'input' };
}

function itemProblem(
  item: unknown,
  index: number,
  input: readonly unknown[],
  isStored: boolean,
): Refused | null {
  const id = jsonText(item, 'id');
  switch (jsonText(item, 'type') ?? 'message') {
    case 'message': {
      const text = jsonText(item, 'role') === 'assistant' ? 'output_text' : 'input_text';
      const types = jsonList(item, 'content').map((part) => jsonText(part, 'type'));
      return wrong(
        types.every((type) => type === text || (type === 'input_image' && text === 'input_text'))
          ? null
          : `Invalid value: '${types.join()}'. Supported values are: '${text}'.`,
      );
    }
    case 'reasoning': {
      const content = jsonText(item, 'encrypted_content');
      if (!Array.isArray(jsonAt(item, 'summary'))) {
        return wrong(`Missing required parameter: 'input[${index}].summary'.`);
      }
      if (content === null) {
        const message = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`;
        return isStored ? null : { message, param: 'input' };
      }
      // openai/codex#8145
      if (!content.startsWith('gAAA-done-')) {
        const message = 'The encrypted content gAAA...Rg== could not be verified.';
        return { message, code: 'invalid_encrypted_content' };
      }
      // vercel/ai#7099, OpenHands/software-agent-sdk#1754: with its id, it wants the next item with the one it had.
      const next = input[index + 1];
      const followed = jsonText(next, 'type') === 'reasoning' || jsonText(next, 'id') !== null || id === null;
      return wrong(
        followed && next !== undefined
          ? null
          : `Item '${id}' of type 'reasoning' was provided without its required following item.`,
      );
    }
    case 'function_call':
    case 'function_call_output': {
      const length = jsonText(item, 'call_id')?.length ?? 0;
      return wrong(length > 0 && length <= 64 ? null : `Invalid 'input[${index}].call_id': string too long.`);
    }
    default:
      return wrong(`Invalid value: '${jsonText(item, 'type')}'.`);
  }
}

/** Each call is answered once, somewhere behind it (continuedev/continue#10092). */
function callsProblem(input: readonly unknown[]): string | null {
  const open = new Set<string | null>();
  for (const item of input) {
    const id = jsonText(item, 'call_id');
    if (jsonText(item, 'type') === 'function_call') {
      open.add(id);
    } else if (jsonText(item, 'type') === 'function_call_output' && !open.delete(id)) {
      return `No tool call found for function call output with call_id ${id}.`;
    }
  }
  return open.size > 0 ? `No tool output found for function call ${[...open].join()}.` : null;
}

/** `strict` is true where it is missing (open-webui/open-webui#30046), and then wants closed schemas. */
function strictProblem(tool: unknown): string | null {
  const schema = jsonAt(tool, 'parameters');
  return (jsonAt(tool, 'strict') ?? true) === false || jsonAt(schema, 'additionalProperties') === false
    ? null
    : `Invalid schema for function '${jsonText(tool, 'name')}': 'additionalProperties' is required to be supplied and to be false.`;
}
