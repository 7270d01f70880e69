import { describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { EngineSettings } from '../../src/engine/agent-engine.js';
import { call, calls, endsWith, refuses, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { inOrder, type Script } from '../fakes/scripted-llm.js';
import { sealed } from '../fakes/scripted-responses.js';
import { codesOf, expectDone, expectTold, nativeAgent, showImages } from './native-agent.js';

const THINK = { thought: 'hm' };
const CODEX = 'openai/gpt-5.1-codex';

const agent = nativeAgent();

type Llm = EngineSettings['llm'];

async function run(
  script: Script,
  model = CODEX,
  changes: Partial<Llm> = {},
  others: Partial<EngineSettings> = {},
) {
  const llm = { model, apiKey: 'llm-key-5519', baseUrl: agent.llm.url, ...changes };
  return await agent.run(script, { llm, ...others });
}

const paths = (): string[] => agent.llm.requests.map(({ url }) => url);
const inputOf = (index: number): unknown[] => jsonList(agent.llm.requests[index]?.body, 'input');
const typesOf = (index: number): string[] =>
  inputOf(index).map((item) => jsonText(item, 'type') ?? 'message');
const answerOf = (host: Awaited<ReturnType<typeof run>>) => host.ofKind('MessageEvent').at(-1)?.llm_message;

const refusal = (message: string, members: object = {}) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null, ...members },
});

describe('a model that only the Responses API has', () => {
  it('is asked there, and gets back what it thought, sealed, with each step', async () => {
    const host = await run(
      inOrder(
        call('think', THINK, {
          reasoning: '**Looking**\n\n**Thinking further**',
          text: 'Let me see.',
          usage: { promptTokens: 1_000, completionTokens: 10, cachedTokens: 800 },
        }),
        call('think', THINK, { reasoning: '' }),
        say('Done.'),
      ),
      CODEX,
      {},
      { modelPrices: { 'gpt-5.1-codex': { input: 1, output: 10, cache_read: 0.1 } } },
    );
    expect(agent.llm.refusals).toEqual([]);
    expect(host.status).toBe('finished');
    expect(paths()).toEqual(['/v1/responses', '/v1/responses', '/v1/responses']);
    expect(agent.llm.requests[0]?.headers).toMatchObject({ authorization: 'Bearer llm-key-5519' });
    expect(agent.llm.requests[0]?.body).toMatchObject({
      model: 'gpt-5.1-codex',
      prompt_cache_key: 'conversation',
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
      reasoning: { summary: 'auto' },
      instructions: expect.stringContaining('You are Slipway'),
    });
    expect(jsonList(agent.llm.requests[0]?.body, 'tools')[0]).toMatchObject({ strict: false });
    const called = ['function_call', 'function_call_output'];
    expect(typesOf(2)).toEqual(['message', 'reasoning', 'message', ...called, 'reasoning', ...called]);
    expect(inputOf(2)[1]).toEqual({
      type: 'reasoning',
      encrypted_content: sealed('rs_0'),
      summary: [
        { type: 'summary_text', text: '**Looking**' },
        { type: 'summary_text', text: '**Thinking further**' },
      ],
    });
    const [action] = host.ofKind('ActionEvent');
    expect(action?.reasoning_content).toBe('**Looking**\n\n**Thinking further**');
    expect(action?.thought).toMatchObject([{ text: 'Let me see.' }]);
    expect(answerOf(host)?.content).toEqual([{ type: 'text', text: 'Done.' }]);
    // 200 at the full price, 800 at that of the cache.
    expect(host.usage[0]).toMatchObject({ promptTokens: 1_000, costUsd: expect.closeTo(0.00038, 8) });
  });

  it('takes several calls, images, and broken arguments', async () => {
    const host = await run(
      inOrder(
        calls({ name: 'think', arguments: THINK }, { name: 'think', arguments: '{"thought": "cut' }),
        say('Done.'),
      ),
    );
    expect(agent.llm.refusals).toEqual([]);
    expect(host.status).toBe('finished');
    expect(typesOf(1).filter((type) => type === 'function_call_output')).toHaveLength(2);
    const image = 'data:image/png;base64,iVBORw0KGgo=';
    await showImages(host, [image]);
    await agent.goOn(host);
    expect(inputOf(2).at(-1)).toMatchObject({
      role: 'user',
      content: [{ type: 'input_image', image_url: image }],
    });
    expect(agent.llm.refusals).toEqual([]);
  });

  it('answers a question beside a run, without calls', async () => {
    const script: Script = ({ toolChoice }) => (toolChoice === 'none' ? say('Well.') : say('Done.'));
    const host = await run(script);
    expect(await agent.ask(host, 'How is it going?')).toBe('Well.');
  });

  // gpt-5-pro and o1-pro (model_prices_and_context_window.json of LiteLLM), by the words of github/gh-models#31
  it('may answer in one piece only', async () => {
    const message =
      "Unsupported value: 'stream' does not support true with this model. Supported values are: false.";
    const answers: ScriptedAnswer[] = [
      call('think', THINK, {
        reasoning: 'Hm.\n\nMore.',
        text: 'Let me see.',
        usage: { promptTokens: 90, completionTokens: 9 },
      }),
      endsWith('length', { text: 'One, ' }),
      say('two.'),
    ];
    const script: Script = ({ body, text }) =>
      body['stream'] === true
        ? refuses(400, refusal(message, { param: 'stream', code: 'unsupported_value' }))
        : (answers.shift() ?? say(text));
    const host = await run(script, 'openai/gpt-5-pro');
    expect(agent.llm.refusals).toEqual([]);
    const whole = Array.from({ length: 3 }, () => undefined);
    expect(agent.llm.requests.map(({ body }) => body['stream'])).toEqual([true, ...whole]);
    expect(typesOf(2).slice(1)).toEqual(['reasoning', 'message', 'function_call', 'function_call_output']);
    expect(host.ofKind('ActionEvent')[0]).toMatchObject({
      reasoning_content: 'Hm.\n\nMore.',
      thought: [{ text: 'Let me see.' }],
    });
    expect(host.usage[0]).toMatchObject({ promptTokens: 90, completionTokens: 9 });
    expect(answerOf(host)?.content).toEqual([{ type: 'text', text: 'two.' }]);
    await run(inOrder({ kind: 'answer', text: 'Done.', isWhole: true }));
    expect(agent.llm.requests).toHaveLength(1);
  });

  it('gets no parameters that it refuses', async () => {
    const parameters = { temperature: 0.2, top_p: 0.5, reasoning_effort: 'high', max_output_tokens: 4_000 };
    await run(inOrder(say('Done.')), CODEX, { parameters });
    expect(agent.llm.refusals).toEqual([]);
    const [request] = agent.llm.requests;
    expect(request?.body).toMatchObject({
      reasoning: { effort: 'high', summary: 'auto' },
      max_output_tokens: 4_000,
    });
    expect(Object.keys(request?.body ?? {})).not.toContain('temperature');
  });
});

// vLLM, Ollama and LM Studio have this API, too, and their models take what OpenAI's reasoning ones do not.
it('sends how to sample to models of others, and leaves it out where that is refused', async () => {
  const llm = { parameters: { temperature: 0.2, top_p: 0.5 } };
  await run(inOrder(say('Done.')), 'openai/responses/qwen3', llm);
  expect(agent.llm.requests[0]?.body).toMatchObject({ temperature: 0.2, top_p: 0.5 });
  await run(inOrder(say('Done.')), 'openai/responses/gpt-5', llm);
  expect(agent.llm.refusals).toHaveLength(2);
  expect(agent.llm.requests.map(({ body }) => [body['temperature'], body['top_p']])).toEqual([
    [undefined, undefined],
  ]);
  await run(inOrder(say('Done.')), 'openai/responses/qwen3');
  expect(Object.keys(agent.llm.requests[0]?.body ?? {})).not.toContain('temperature');
});

const NOT_SUPPORTED = { code: 'OperationNotSupported' };
const NOT_ENABLED =
  'Azure OpenAI Responses API is not enabled in this region. Please check https://aka.ms/aoai';

describe('the API', () => {
  const WITH_EFFORT = 'Function tools with reasoning_effort are not supported for gpt-5';
  const USE_OTHER = `${WITH_EFFORT} in /v1/chat/completions. Please use /v1/responses instead.`;
  // laurent22/joplin#16451: though the request had no reasoning_effort
  const OR_NONE = `${WITH_EFFORT} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`;
  it.each([
    // pgadmin-org/pgadmin4#9795, pipecat-ai/pipecat#4043, vanna-ai/vanna#967, caozhiyuan/copilot-api#113, Wei-Shaw/sub2api#885
    [404, 'This model is only supported in v1/responses and not in v1/chat/completions.', {}],
    [400, USE_OTHER, { param: 'reasoning_effort' }],
    [400, OR_NONE, { param: 'reasoning_effort' }],
    [400, 'The chatCompletion operation does not work with the specified model, gpt-5-codex.', NOT_SUPPORTED],
    [400, 'model "gpt-5.4" is not accessible via the /chat/completions endpoint', {}],
    [
      400,
      'Unsupported legacy protocol: /v1/chat/completions is not supported. Please use /v1/responses.',
      {},
    ],
  ])('changes once with a refusal that says so: %s %s', async (status, message, members) => {
    const host = await run(
      ({ url, index }) =>
        url.endsWith('/responses')
          ? index < 2
            ? call('think', THINK)
            : say('Done.')
          : refuses(status, refusal(message, members)),
      'openai/house-model',
      { parameters: { reasoning_effort: 'low' } },
    );
    expect(host.status).toBe('finished');
    expect(paths()).toEqual(['/v1/chat/completions', '/v1/responses', '/v1/responses']);
    expect(agent.llm.requests.at(-1)?.body).toMatchObject({ reasoning: { effort: 'low' } });
  });

  it.each([
    // chatanywhere/GPT_API_free#383, BerriAI/litellm#13130, whiteguo233/OpenBiliClaw#95
    [404, JSON.stringify({ detail: 'Not Found' })],
    [404, JSON.stringify({ error: { code: 404, message: 'File Not Found', type: 'not_found_error' } })],
    [404, JSON.stringify(refusal('Invalid URL (POST /v1/responses)'))],
    [404, '404 page not found'],
    // responsibleai/ASSERT#129, which does not say the status
    [400, JSON.stringify({ error: { code: 'NotFound', message: NOT_ENABLED } })],
    [405, '<html><head><title>405 Not Allowed</title></head></html>'],
  ])('is the older one where a proxy has no other: %s %s', async (status, body) => {
    const type = body.startsWith('{') ? 'application/json' : 'text/html';
    const host = await run(({ url, index }) =>
      url.endsWith('/responses')
        ? { kind: 'body', status, type, body }
        : index < 2
          ? call('think', THINK)
          : say('Done.'),
    );
    expect(host.status).toBe('finished');
    expect(paths()).toEqual(['/v1/responses', '/v1/chat/completions', '/v1/chat/completions']);
  });

  it('does not change for a model that is missing', async () => {
    const message = 'The model `gpt-9-codex` does not exist or you do not have access to it.';
    const host = await run(
      () => refuses(404, refusal(message, { code: 'model_not_found' })),
      'openai/gpt-9-codex',
    );
    expectTold(host, 'LlmRejected', message);
    expect(paths()).toEqual(['/v1/responses']);
  });

  it('is refused in both: the effort is left out, or the user reads the refusal', async () => {
    const script: Script = ({ url, body }) =>
      url.endsWith('/responses')
        ? refuses(404, { detail: 'Not Found' })
        : body['reasoning_effort'] === undefined
          ? say('Done.')
          : refuses(400, refusal(USE_OTHER));
    const host = await run(script, 'openai/gpt-5.4', { parameters: { reasoning_effort: 'low' } });
    expect(host.status).toBe('finished');
    const lost = await run(({ url }) =>
      url.endsWith('/responses') ? refuses(404, { detail: 'Not Found' }) : refuses(400, refusal(USE_OTHER)),
    );
    expectTold(lost, 'LlmRejected', USE_OTHER);
  });
});

describe('a refusal of the Responses API', () => {
  const SUMMARY = 'Your organization must be verified to generate reasoning summaries.';
  const EFFORT = "Unsupported value: 'reasoning.effort' does not support 'low' with this model.";
  const code = 'unsupported_value';
  it.each([
    // OpenHands/software-agent-sdk#987
    [SUMMARY, { param: 'reasoning.summary', code }, { reasoning: { effort: 'low' } }],
    [EFFORT, { param: 'reasoning.effort', code }, { reasoning: { summary: 'auto' } }],
    // microsoft/agent-framework#7483
    ['Encrypted content is not supported with this model.', { param: 'include' }, { include: undefined }],
    // MoonshotAI/kimi-code#2166
    ['Validation: Unsupported parameter(s): prompt_cache_key', {}, { prompt_cache_key: undefined }],
  ])('costs the parameter only, once: %s', async (message, members, left) => {
    const refused = refuses(400, refusal(message, members));
    const host = await run(inOrder(refused, call('think', THINK), say('Done.')), CODEX, {
      parameters: { reasoning_effort: 'low' },
    });
    expect(host.status).toBe('finished');
    expect(agent.llm.requests).toHaveLength(3);
    const [first, , last] = agent.llm.requests.map(({ body }) => ({ ...body, input: null }));
    expect(last).toEqual({ ...first, ...left });
  });

  // openai/codex#8145; a gateway that spreads requests over accounts, or another key
  it.each([
    refusal('The encrypted content gAAA...Rg== could not be verified.', {
      code: 'invalid_encrypted_content',
    }),
    // LiteLLM's proxy, 1.110
    refusal(
      'litellm.BadRequestError: OpenAIException - {"error":{"message":"The encrypted content gAAA...Rg== could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}\n\n This error occurs when load balancing Responses API',
      { code: '400' },
    ),
  ])('of sealed thoughts leaves these out, and keeps later ones: %j', async (unreadable) => {
    const thinking = call('think', THINK, { reasoning: 'Hm.' });
    const host = await run(inOrder(thinking, refuses(400, unreadable), thinking, say('Done.')));
    expectDone(host);
    const contents = inputOf(3).flatMap((item) => jsonText(item, 'encrypted_content') ?? []);
    expect(contents).toEqual([sealed('rs_2')]);
  });

  const failed = (code: string, message: string) => ({
    type: 'response.failed',
    response: { id: 'resp_0', status: 'failed', error: { code, message }, incomplete_details: null },
  });
  const errorEvent = (code: string, message: string, type = code) => ({
    type: 'error',
    error: { type, code, message },
  });
  const quota = 'You exceeded your current quota, please check your plan and billing details.';
  const full = 'Your input exceeds the context window of this model. Please adjust your input and try again.';
  const tooLong = errorEvent('context_length_exceeded', full, 'invalid_request_error');
  it.each([
    // vercel/ai, __fixtures__/openai-error.1.chunks.txt
    ['', errorEvent('insufficient_quota', quota), 'LlmQuotaExceeded'],
    ['Well', errorEvent('insufficient_quota', quota), 'LlmQuotaExceeded'],
    ['Well', failed('insufficient_quota', quota), 'LlmQuotaExceeded'],
    // dyad-sh/dyad#1672
    ['', tooLong, 'LlmContextFull'],
    ['Well', tooLong, 'LlmContextFull'],
  ])('in a stream after %j: %j', async (text, error, expected) => {
    const host = await run(() => ({ kind: 'streamError', text, error }));
    expect(codesOf(host)).toContain(expected);
  });

  it.each([
    [{ kind: 'streamError', text: 'Well', error: failed('server_error', 'The model failed.') }],
    [{ kind: 'streamError', text: 'Well', error: failed('rate_limit_exceeded', 'Rate limit reached.') }],
    [{ kind: 'streamError', text: '', error: { type: 'response.failed', response: { error: null } } }],
    [{ kind: 'cut', text: 'Well' }],
    // The stream ends properly, but without an end of the answer.
    [endsWith('', { text: 'Well' })],
  ] satisfies [ScriptedAnswer][])('that passes is asked again: %j', async (answer) => {
    const host = await run(inOrder(answer, say('Done.')));
    expectTold(host, 'LlmRetried', '', 'finished');
    expect(answerOf(host)?.content).toEqual([{ type: 'text', text: 'Done.' }]);
  });

  it('of its length lets it go on, and of its content is told', async () => {
    await run(inOrder(endsWith('length', { text: 'One, ' }), say('two.')));
    expect(agent.llm.requests).toHaveLength(2);
    const host = await run(() => endsWith('content_filter'));
    expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({ code: 'LlmContentFiltered' });
  });
});
