import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type { AgentEvent, Content } from '@slipway/agent-protocol/events.js';
import { isJsonObject } from '@slipway/common/json-access.js';
import { modelFactory } from '../../src/engine/native/language-model.js';
import { messagesFromEvents } from '../../src/engine/native/messages-from-events.js';
import { callModelWithRetries } from '../../src/engine/native/model-call.js';
import type { OfferedTool } from '../../src/engine/native/prompt-filter.js';
import { originOf } from '../../src/engine/native/prompt-limits.js';
import type {
  OpaqueMembers,
  OpaqueData,
  OriginalPart,
  OriginalResponse,
} from '../../src/engine/agent-engine.js';
import {
  actionEvent,
  errorEvent,
  observationEvent,
  systemPromptEvent,
} from '../../../../test/fakes/sample-events.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';
import {
  anthropicRefusal,
  compatibleRefusal,
  googleRefusal,
  mistralRefusal,
  openAiRefusal,
} from '../fakes/model-limits.js';
import { startListening } from '../../../../test/support/start-listening.js';

// The log is replayed with every request: what a server refuses once, it refuses for ever.
// https://github.com/anthropics/claude-code/issues/56064 (half a character), 23440 (a blank block),
// https://github.com/agno-agi/agno/issues/5382 (long ids), https://github.com/mcp-use/mcp-use/issues/90 (invented names)

const RUNS = Number(process.env['FIELD_RUNS'] ?? 100);
const TIMEOUT_MS = 60_000 + RUNS * 60;
const SEED = Number(process.env['FIELD_SEED'] ?? 27);

/** As fast-check's own unit `binary`, of which it lists all 1.1 million before the first text. */
const codePoint = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
const oddText = fc.oneof(
  { weight: 3, arbitrary: fc.string({ maxLength: 20 }) },
  fc.string({ unit: codePoint, maxLength: 12 }),
  fc.constantFrom('', ' ', '\n\t ', '\u00a0', '\ud83d', 'a\udc00b', '\0', 'x\0', '😀', '[1,2]', 'ends \n '),
);
const id = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'c', 'd', 'e') },
  fc.constantFrom('', ' ', 'functions.terminal:0', `call_${'x'.repeat(60)}`, 'größe', '\ud83d', 'a/b'),
);
const toolName = fc.oneof(
  fc.constantFrom('terminal', 'think', 'functions.terminal', '', 'a b', 'x'.repeat(90), 'größe', '\ud83d'),
  oddText,
);
const argumentText = fc.oneof(
  fc.constantFrom('{}', '', '[1]', '"{}"', 'null', '{"a":'),
  fc.constantFrom('{"__proto__":{"a":1}}', '{"a":"\\ud83d \\u0000"}'),
  fc.json({ maxDepth: 3 }),
  fc.nat(300).map((depth) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`),
);
const imageUrl = fc.oneof(
  fc.constantFrom(
    'data:image/png;base64,iVBORw0KGgo=',
    'data:image/jpeg;base64,iVBORw0KGgo=',
    'data:image/png;base64,/9j/AAAA',
    'data:image/svg+xml;base64,PHN2Zz4=',
    'data:image/png;base64,',
    'data:image/png;base64,!!',
    'data:image/png,raw',
    'DATA:image/png;base64,iVBORw0KGgo=',
    'data:',
    'https://example.com/a.png',
    'http://127.0.0.1:1/gone.png',
    'file:///etc/passwd',
    'no address',
    '',
  ),
  oddText,
);
const content: fc.Arbitrary<Content[]> = fc.array(
  fc.oneof(
    oddText.map((text): Content => ({ type: 'text', text })),
    fc.array(imageUrl, { maxLength: 3 }).map((image_urls): Content => ({ type: 'image', image_urls })),
  ),
  { maxLength: 3 },
);
const texts = fc.array(
  oddText.map((text) => ({ type: 'text' as const, text })),
  { maxLength: 2 },
);

/** What an event is about: a call. */
const about = fc
  .record({ call: id, tool_name: toolName })
  .map(({ call, tool_name }) => ({ tool_name, tool_call_id: call, action_id: call }));

const withoutIdentity = fc.oneof(
  fc.record({
    kind: fc.constant('MessageEvent' as const),
    source: fc.constantFrom('user' as const, 'agent' as const, 'environment' as const),
    llm_message: fc.record({
      role: fc.constantFrom('user' as const, 'assistant' as const, 'system' as const, 'tool' as const),
      content,
      reasoning_content: fc.option(oddText),
    }),
    llm_response_id: fc.option(id),
    activated_skills: fc.constant<string[]>([]),
    extended_content: texts,
  }),
  fc
    .record({
      name: toolName,
      args: argumentText,
      thought: texts,
      reasoning: fc.option(oddText),
      about,
      response: id,
    })
    .map(({ name, args, thought, reasoning, about: { tool_call_id: call }, response }) =>
      actionEvent(call, response, {
        thought,
        reasoning_content: reasoning,
        action: null,
        tool_name: name,
        tool_call: { id: call, name, arguments: args, origin: 'completion' as const },
      }),
    ),
  fc.record({ about, result: content }).map(({ about: members, result }) => ({
    ...observationEvent('', ''),
    ...members,
    observation: { kind: 'ThinkObservation' as const, content: result, is_error: false },
  })),
  fc.record({ about, error: oddText }).map(({ about: { tool_name, tool_call_id }, error }) => ({
    ...errorEvent(tool_call_id, error),
    tool_name,
  })),
  fc.record({ about, reason: oddText }).map(({ about: members, reason }) => ({
    kind: 'UserRejectObservation' as const,
    source: 'environment' as const,
    ...members,
    rejection_reason: reason,
    rejection_source: 'user' as const,
  })),
  oddText.map(systemPromptEvent),
  fc
    .record({
      forgotten: fc.array(fc.nat(30), { maxLength: 12 }),
      summary: fc.option(oddText),
      offset: fc.nat(8),
    })
    .map(({ forgotten, summary, offset }) => ({
      kind: 'Condensation' as const,
      source: 'environment' as const,
      forgotten_event_ids: forgotten.map((position) => `event-${position}`),
      summary_offset: offset,
      llm_response_id: 'summary',
      summary,
    })),
);
const log: fc.Arbitrary<AgentEvent[]> = fc
  .array(withoutIdentity, { maxLength: 25 })
  .map((events) => events.map((event, position) => ({ ...event, id: `event-${position}`, timestamp: '' })));

const opaque: fc.Arbitrary<OpaqueData | null> = fc.constantFrom<OpaqueData | null>(
  null,
  { anthropic: { signature: 'signed' } },
  { anthropic: { redactedData: 'xyz' } },
  { openaiCompatible: { extra_content: { google: { thought_signature: 'abc' } } } },
  { openaiCompatible: { extra_content: { 'x\0': 'y\ud83d' } } },
  { anthropic: { signature: 'signed\0' } },
);
const part: fc.Arbitrary<OriginalPart> = fc.oneof(
  fc.record({ type: fc.constantFrom('text' as const, 'reasoning' as const), text: oddText, opaque }),
  fc.record({ type: fc.constant('call' as const), id, name: toolName, arguments: argumentText, opaque }),
);
const originals = fc.array(
  fc.record({
    id,
    origin: fc.constantFrom('here', 'elsewhere'),
    message: fc.constantFrom<OpaqueMembers>(
      {},
      { reasoning: 'hm' },
      { reasoning: 'h\ud83dm\0' },
      { reasoning_details: [{ type: 'reasoning.text', text: 'h\0m' }] },
      { reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] },
    ),
    parts: fc.array(part, { maxLength: 4 }),
  }),
  { maxLength: 4 },
);

const schemaKeyword = fc.constantFrom(
  ...'type properties items required anyOf oneOf allOf not enum const format pattern minimum'.split(' '),
  ...'exclusiveMinimum additionalProperties prefixItems default description nullable id'.split(' '),
  ...'$ref $schema $defs'.split(' '),
);
const oddNames = ['a', 'b', '$filter', 'user/name', '__proto__', '', 'x'.repeat(70)];
const oddSchemas: unknown[] = [true, null, {}, { type: 'object' }, { type: 'array' }, { type: 'int' }];
const oddValues: unknown[] = [['string', 'null'], [], ['a', 'a'], true, -1, 1.5, null, 'object', 'array'];
const { schema: oddSchema } = fc.letrec<{ schema: unknown; value: unknown }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(...oddSchemas, { $ref: '#' }),
    fc.dictionary(schemaKeyword, tie('value'), { maxKeys: 5 }),
  ),
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<unknown>(...oddValues, '#/$defs/a', 'http://elsewhere/schema', 'uint32', '('),
    tie('schema'),
    fc.array(tie('schema'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...oddNames), tie('schema'), { maxKeys: 4 }),
  ),
}));
const tools: fc.Arbitrary<OfferedTool[]> = fc.array(
  fc.record({
    name: toolName,
    description: oddText,
    inputSchema: oddSchema.filter(isJsonObject),
  }),
  { maxLength: 4 },
);

const odd = fc.record({ events: log, kept: originals, offered: tools });
interface Odd {
  events: AgentEvent[];
  kept: OriginalResponse[];
  offered: OfferedTool[];
}

let server: Server;
let origin = '';
let body: unknown;

beforeAll(async () => {
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    body = await json(request);
    response.writeHead(400).end('{}');
  };
  server = createServer((request, response) => void receive(request, response));
  origin = `http://127.0.0.1:${await startListening(server)}/v1`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Sends the prompt; the model's server keeps its body. */
async function send({ events, kept, offered }: Odd, name: string, baseUrl: string | null): Promise<unknown> {
  body = undefined;
  const settings = engineSettings('/', '', { llm: { model: name, apiKey: 'key', baseUrl } });
  const model = await modelFactory(origin, 'conversation')(settings);
  const written = { origin: originOf(model.target), originals: new Map<string, OriginalResponse>() };
  for (const original of kept) {
    const isOwn = original.origin === 'here';
    written.originals.set(original.id, { ...original, origin: isOwn ? written.origin : 'elsewhere' });
  }
  const { instructions, messages } = messagesFromEvents(events, written);
  const { signal } = new AbortController();
  const request = { model, instructions: instructions ?? '', messages, tools: offered, signal };
  const patience = { host: new MemoryEngineHost(settings), wait: async () => undefined, isQuiet: true };
  await callModelWithRetries(request, patience).catch((error: unknown) => {
    if (body === undefined) {
      throw error;
    }
  });
  return body;
}

it.each<[string, string, boolean, ((prompt: unknown) => string | null)[]]>([
  ['servers like OpenAI', 'openai/gpt', true, [openAiRefusal, compatibleRefusal]],
  ['Mistral', 'openai/mistral-large', true, [openAiRefusal, compatibleRefusal, mistralRefusal]],
  ['Google', 'openai/gemini-3', true, [openAiRefusal, compatibleRefusal, googleRefusal]],
  ['Anthropic', 'anthropic/claude', false, [anthropicRefusal]],
])(
  'a prompt from any log is one that %s accept',
  async (_, name, hasAddress, refusals) => {
    await fc.assert(
      fc.asyncProperty(odd, async (given) => {
        const prompt = await send(given, name, hasAddress ? origin : null);
        expect(refusals.map((refusal) => refusal(prompt))).toEqual(refusals.map(() => null));
      }),
      { numRuns: RUNS, seed: SEED },
    );
  },
  TIMEOUT_MS,
);
