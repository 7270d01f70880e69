import { describe, expect, it } from '@jest/globals';
import { page, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, expectTold, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

const DONE = 'data: [DONE]\n\n';
const stream = (...events: string[]): ScriptedAnswer => page(events.join(''), 'text/event-stream');
const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
const chunk = (delta: unknown, finish: unknown = null, others: object = {}): string =>
  event({
    id: 'c1',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...others,
  });
const called = (call: object): string => chunk({ tool_calls: [call] });
const HELLO = chunk({ role: 'assistant', content: 'Hello' });
const END = chunk({}, 'stop');
const CALLED = chunk({}, 'tool_calls');

describe('an answer in an odd stream', () => {
  it.each<[string, ScriptedAnswer]>([
    ['CRLF', page((HELLO + END + DONE).replaceAll('\n', '\r\n'), 'text/event-stream')],
    [
      'no space behind the colon',
      page((HELLO + END + DONE).replaceAll('data: ', 'data:'), 'text/event-stream'),
    ],
    ['comments (OpenRouter)', stream(': OPENROUTER PROCESSING\n\n', HELLO, ': ping\n\n', END, DONE)],
    // caozhiyuan/copilot-api#88, omnigent-ai/omnigent#1474, netease-lcap/wave-agent#1326
    ['blank data that keeps the connection open', stream(HELLO, 'data:\n\n', 'data: \n\n', END, DONE)],
    ['a ping', stream('event: ping\n', event({ type: 'ping' }), HELLO, END, DONE)],
    // huggingface/text-generation-inference#3003, vllm-project/vllm#12394
    ['usage without choices', stream(HELLO, END, event({ id: 'c1', choices: null, usage: {} }), DONE)],
    ['an error that is null', stream(chunk({ content: 'Hello' }, null, { error: null }), END, DONE)],
    ['another role', stream(chunk({ role: 'model', content: 'Hello' }), END, DONE)],
    [
      'members of other types',
      stream(chunk({ content: 'Hello', reasoning: {} }, null, { id: 7, created: '1', usage: '' }), END, DONE),
    ],
    // anomalyco/opencode#43882, earendil-works/pi#8473: the stream is whole, but says no reason for its end.
    ['no reason for its end', stream(HELLO, DONE)],
  ])('is read: %s', async (_, answer) => {
    const host = await agent.run(inOrder(answer));
    expect(host.status).toBe('finished');
    expect(answersOf(host)).toEqual(['Hello']);
    expect(agent.llm.requests).toHaveLength(1);
  });

  const finish = { message: 'All is well.' };
  const json = JSON.stringify(finish);
  const named = (args: unknown) => ({ function: { name: 'finish', arguments: args } });
  const first = { index: 0, id: 'a' };
  const more = called({ index: 0, function: { arguments: json } });
  it.each<[string, ScriptedAnswer]>([
    ['arguments as an object', stream(called({ ...first, ...named(finish) }), CALLED, DONE)],
    [
      'a call that begins without its function',
      stream(called({ ...first, type: 'function' }), called({ index: 0, ...named(json) }), CALLED, DONE),
    ],
    ['an index as text', stream(called({ index: '0', id: 'a', ...named(json) }), CALLED, DONE)],
    ['an id as a number', stream(called({ index: 0, id: 5, ...named(json) }), CALLED, DONE)],
    ['neither an index nor an id', stream(called(named(json)), CALLED, DONE)],
    // earendil-works/pi#6226: GLM at NVIDIA NIM.
    ['no reason for its end', stream(called({ ...first, ...named(json) }), DONE)],
    // CommandCodeAI/command-code#785, decolua/9router#4079: neither that nor an end of the stream.
    ['no end', stream(called({ ...first, ...named('') }), more)],
    // openai/openai-agents-js#712: Bedrock
    [
      'an empty object before the arguments',
      stream(called({ ...first, ...named('{}') }), more, CALLED, DONE),
    ],
  ])('is read as a call: %s', async (_, answer) => {
    const host = await agent.run(inOrder(answer));
    expect(host.ofKind('ActionEvent')).toMatchObject([{ action: { kind: 'FinishAction', ...finish } }]);
    expect(agent.llm.requests).toHaveLength(1);
  });

  it('is asked for again when it ends in the middle of a call', async () => {
    const half = called({ ...first, ...named(json.slice(0, -3)) });
    const host = await agent.run(inOrder(stream(half), stream(chunk({ content: 'Whole.' }, 'stop'), DONE)));
    expect(answersOf(host)).toEqual(['Whole.']);
    expect(host.ofKind('ActionEvent')).toEqual([]);
  });

  it('is asked for again when it ends before the stream does', async () => {
    const host = await agent.run(inOrder(stream(HELLO), stream(chunk({ content: 'Whole.' }, 'stop'), DONE)));
    expect(answersOf(host)).toEqual(['Whole.']);
  });

  it("is asked for again when the stream of Anthropic's API ends before it", async () => {
    const answers = [{ text: 'I will now run the tests and', stop: null }, { text: 'Whole.' }];
    const { host } = await agent.runAtAnthropic(answers);
    expect(answersOf(host)).toEqual(['Whole.']);
    expectTold(host, 'LlmRetried', '', 'finished');
  });

  const USED = { prompt_tokens: 1_000, completion_tokens: 100 };
  const PRICES = { scripted: { input: 1, output: 10, cache_read: 0.1 } };
  const IN_CACHE = (200 + 80 + 1_000) / 1_000_000;
  it.each([
    // What the model reasoned is in the total alone; DeepSeek's name for what its cache had.
    [{ total_tokens: 1_400 }, 'catalogue', (1_000 + 400 * 10) / 1_000_000],
    [{ prompt_tokens_details: { cached_tokens: 800 } }, 'catalogue', IN_CACHE],
    [{ prompt_cache_hit_tokens: 800 }, 'catalogue', IN_CACHE],
    // anomalyco/opencode#43818, earendil-works/pi#2873: OpenRouter and LiteLLM say what they charge.
    [{ cost: 0.0125 }, 'provider', 0.0125],
    [{ cost: 0 }, 'provider', 0],
    [{ cost: 0.001, is_byok: true, cost_details: { upstream_inference_cost: 0.02 } }, 'provider', 0.021],
    [{ cost: 0.001, is_byok: false, cost_details: { upstream_inference_cost: 0.001 } }, 'provider', 0.001],
    [{ cost: -1 }, 'catalogue', 0.002],
    [{ cost: '0.1' }, 'catalogue', 0.002],
  ])('has its price: %j, of the %s', async (members, source, cost) => {
    const last = event({ choices: [], usage: { ...USED, ...members } });
    const host = await agent.run(inOrder(stream(HELLO, END, last, DONE)), { modelPrices: PRICES });
    expect(host.usage).toMatchObject([{ costSource: source, costUsd: expect.closeTo(cost, 9) }]);
  });

  it('is counted where the server sends zeros for what it used', async () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const host = await agent.run(inOrder(stream(HELLO, END, event({ choices: [], usage }), DONE)));
    expect(host.usage[0]?.promptTokens).toBeGreaterThan(0);
    expect(host.usage[0]?.completionTokens).toBeGreaterThan(0);
  });
});

it.each<[string, string, string, string]>([
  ['in a text', event({ error: 'no such luck' }), 'LlmUnavailable', 'answered 502: no such luck'],
  [
    'without a member of that name (vLLM)',
    event({ object: 'error', message: 'The model is gone', code: 404 }),
    'LlmRejected',
    'answered 404: The model is gone',
  ],
  ['without words', event({ error: { code: 503 } }), 'LlmUnavailable', 'answered 503: {"code":503}'],
  ['as a detail', event({ detail: 'Out of workers' }), 'LlmUnavailable', 'Out of workers'],
  // LiteLLM's form
  [
    'with a code in a text',
    event({ error: { message: 'slow', type: 'None', param: 'None', code: '429' } }),
    'LlmRateLimited',
    'answered 429: slow',
  ],
  // OpenRouter
  [
    'in a choice',
    event({
      choices: [
        { delta: { content: '' }, error: { code: 429, message: 'upstream slow' }, finish_reason: 'error' },
      ],
    }),
    'LlmRateLimited',
    'answered 429: upstream slow',
  ],
])('an error in a stream is told: %s', async (_, error, code, detail) => {
  const host = await agent.run(inOrder(stream(HELLO, error, DONE)));
  expect(codesOf(host).at(-1)).toBe(code);
  expect(host.ofKind('ConversationErrorEvent').at(-1)?.detail).toContain(detail);
  expect(answersOf(host)).toEqual([]);
});
