import { describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ModelParameters } from '@slipway/agent-protocol/conversation-schemas.js';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { call, fails, refuses, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, type Script } from '../fakes/scripted-llm.js';
import { codesOf, expectDone, expectTold, nativeAgent, showImages } from './native-agent.js';
import { nativeServer } from './native-server.js';
import { ScriptedAnthropic } from '../fakes/scripted-anthropic.js';

const agent = nativeAgent();

const llmWith = (parameters: ModelParameters) => ({
  model: 'openai/scripted',
  apiKey: 'key-of-the-model',
  baseUrl: agent.llm.url,
  parameters,
});

// Aider-AI/aider#888, crewAIInc/crewAI#3177, paymicro/InvAit#9: what is set for a model has no effect.
describe('the parameters of a model', () => {
  it('are sent with each call', async () => {
    await agent.run(inOrder(say('done')), {
      llm: llmWith({
        temperature: 0.25,
        top_p: 0.5,
        top_k: 20,
        seed: 7,
        max_output_tokens: 1_234,
        reasoning_effort: 'high',
        extra_headers: { 'x-team': 'blue', authorization: 'Bearer other' },
        litellm_extra_body: { chat_template_kwargs: { thinking: false }, messages: [], stream: false },
      }),
    });
    const [request] = agent.llm.requests;
    expect(request?.body).toMatchObject({
      temperature: 0.25,
      top_p: 0.5,
      top_k: 20,
      seed: 7,
      max_tokens: 1_234,
      reasoning_effort: 'high',
      chat_template_kwargs: { thinking: false },
      stream: true,
    });
    expect(request?.messages.length).toBeGreaterThan(1);
    expect(request?.headers).toMatchObject({ 'x-team': 'blue', authorization: 'Bearer other' });
  });

  it('are not sent where none are set, but for an end of the answer', async () => {
    await agent.run(inOrder(say('done')), { llm: llmWith({ temperature: null }) });
    expect(Object.keys(agent.llm.requests[0]?.body ?? {}).toSorted()).toEqual(
      ['max_tokens', 'messages', 'model', 'stream', 'stream_options', 'tool_choice', 'tools'].toSorted(),
    );
  });

  it('that are of one provider have effect there', async () => {
    const openrouter = { openrouter_site_url: 'https://site.example', openrouter_app_name: 'Näme' };
    await agent.run(inOrder(say('done')), { llm: llmWith({ api_version: '2026-01-01', ...openrouter }) });
    expect(agent.llm.requests[0]?.url).toContain('?api-version=2026-01-01');
    expect(agent.llm.requests[0]?.headers).not.toHaveProperty('x-title');
  });

  // github/gh-models#31
  it('are left to a model that answers in one piece only', async () => {
    const message =
      "Unsupported value: 'stream' does not support true with this model. Supported values are: false.";
    const error = { message, type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' };
    const host = await agent.run(
      ({ body }) => (body['stream'] === true ? refuses(400, { error }) : say('done')),
      { llm: llmWith({ temperature: 0.5 }) },
    );
    expect(host.status).toBe('finished');
    expect(
      agent.llm.requests.map(({ body }) => [body['stream'], body['stream_options'], body['temperature']]),
    ).toEqual([
      [true, { include_usage: true }, 0.5],
      [undefined, undefined, 0.5],
    ]);
  });

  it('may leave images out', async () => {
    const host = await agent.run(inOrder(say('done')), { llm: llmWith({ disable_vision: true }) });
    await showImages(host, ['data:image/png;base64,iVBORw0KGgo=']);
    await agent.goOn(host);
    expect(agent.llm.requests.at(-1)?.text).toContain('disable_vision is set');
    expect(agent.llm.requests.at(-1)?.text).not.toContain('iVBORw0KGgo');
  });

  it('decide about retries', async () => {
    const busy = inOrder(fails(503));
    await agent.run(busy, { llm: llmWith({ num_retries: 2, retry_min_wait: 3, retry_max_wait: 60 }) });
    expect(agent.pauses).toEqual([3_000, 4_000]);
    const host = await agent.run(busy, { llm: llmWith({ num_retries: 0 }) });
    expect(codesOf(host)).toEqual(['LlmUnavailable']);
  });

  it('are refused in words', async () => {
    const extra_headers = { Host: 'internal' };
    const host = await agent.run(inOrder(say('done')), { llm: llmWith({ extra_headers }) });
    expectTold(host, 'LlmNotConfigured', 'extra_headers');
    expect(agent.llm.requests).toEqual([]);
  });

  it("are sent to Anthropic's own API too", async () => {
    const parameters = {
      temperature: 0.25,
      top_k: 20,
      max_output_tokens: 1_234,
      extra_headers: { 'X-Api-Key': 'other', 'x-team': 'blue' },
      litellm_extra_body: { service_tier: 'standard_only' },
    };
    const { claude } = await agent.runAtAnthropic([{ text: 'done' }], { llm: { parameters } });
    expect(claude.requests[0]?.body).toMatchObject({
      temperature: 0.25,
      top_k: 20,
      max_tokens: 1_234,
      service_tier: 'standard_only',
    });
    expect(claude.requests[0]?.headers).toMatchObject({ 'x-api-key': 'other', 'x-team': 'blue' });
  });
});

/** Refuses what has a member as this provider does, and answers what has none. */
const refusing = (member: string, body: unknown, status = 400): Script => {
  const sent = new RegExp(`"${member}":`);
  return ({ body: asked }) =>
    sent.test(JSON.stringify({ ...asked, tools: [] })) ? refuses(status, body) : say('done');
};

describe('a parameter that a server refuses', () => {
  const NEWER = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  const DEFAULT_ONLY =
    "Unsupported value: 'temperature' does not support 0.25 with this model. Only the default (1) value is supported.";
  it.each<[string, unknown, ModelParameters]>([
    // OpenHands/software-agent-sdk#1083, anomalyco/opencode#37964: Azure
    [
      'max_tokens',
      { message: `Unsupported parameter: ${NEWER}`, param: 'max_tokens' },
      { max_output_tokens: 1_234 },
    ],
    // FlowiseAI/Flowise#2866, modelscope/ms-agent#489
    ['stream_options', { message: "Extra inputs are not permitted, field: 'stream_options'" }, {}],
    [
      'reasoning_effort',
      'Model grok-4 does not support parameter reasoningEffort.',
      { reasoning_effort: 'high' },
    ],
    [
      'temperature',
      { message: '`temperature` may only be set to 1 when thinking is enabled.' },
      { temperature: 0.5 },
    ],
    // simular-ai/Agent-S#131, microsoft/vscode#253673, browser-use/browser-use#2467
    ['temperature', { message: DEFAULT_ONLY }, { temperature: 0.25 }],
    ['seed', { message: 'seed: Extra inputs are not permitted' }, { seed: 7 }],
    // BerriAI/litellm#25332, BerriAI/litellm#37980
    ['tool_choice', "Bedrock doesn't support tool_choice=none. Supported tool_choice values=['auto']", {}],
  ])('is left out from then on: %s', async (member, error, parameters) => {
    const llm = llmWith({ ...parameters, top_p: 0.5 });
    const host = await agent.run(refusing(member, { error }), { llm });
    expectDone(host);
    const sent = agent.llm.requests.at(-1)?.body;
    expect(sent?.['max_completion_tokens']).toBe(parameters.max_output_tokens);
    expect(sent).toMatchObject({ top_p: 0.5 });
    const { length } = agent.llm.requests;
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests).toHaveLength(length + 1);
  });

  it('is an error where that is switched off, and so is one that is out of bounds', async () => {
    const off = llmWith({ temperature: 0.25, drop_params: false });
    const strict = await agent.run(refusing('temperature', { error: DEFAULT_ONLY }), { llm: off });
    expectTold(strict, 'LlmRejected', DEFAULT_ONLY);
    const refusal = inOrder(fails(400, 'temperature must be at most 1'));
    const host = await agent.run(refusal, { llm: llmWith({ temperature: 3 }) });
    expect(host.status).toBe('error');
    expect(agent.llm.requests).toHaveLength(1);
  });

  it('is the second of two that exclude each other', async () => {
    const message = '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';
    await agent.run(refusing('top_p', { error: { message } }), {
      llm: llmWith({ temperature: 0.25, top_p: 0.5 }),
    });
    expect(agent.llm.requests.at(-1)?.body['temperature']).toBe(0.25);
  });

  // Gitlawb/openclaude#1125, can1357/oh-my-pi#9569: OpenRouter compares what is left with the longest answer allowed.
  it('may be the length of an answer, for what credit is left', async () => {
    const credit = (tokens: number): Script => {
      const message = `This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can only afford ${tokens}.`;
      return ({ body }) =>
        Number(body['max_tokens']) > tokens ? refuses(402, { error: { code: 402, message } }) : say('done');
    };
    expectDone(await agent.run(credit(5_365)));
    expect(agent.llm.requests.at(-1)?.body['max_tokens']).toBe(5_365);
    expectTold(await agent.run(credit(300)), 'LlmQuotaExceeded', 'can only afford 300');
  });

  // BerriAI/litellm#30835, charmbracelet/crush#1590: Mistral; Cerebras and Groq have a sentence of their own.
  const extra = {
    type: 'extra_forbidden',
    loc: ['body', 'messages', 2, 'assistant', 'reasoning_content'],
    msg: 'Extra inputs are not permitted',
  };
  const unsupported =
    "messages.2.assistant.reasoning: property 'messages.2.assistant.reasoning' is unsupported";
  it.each<[string, number, unknown]>([
    ['reasoning_content', 422, { detail: [extra] }],
    ['reasoning', 400, { message: unsupported }],
  ])('may be a member of what it has written itself: %s', async (member, status, body) => {
    const thought = call('think', { thought: 'x' }, { reasoning: 'hm', reasoningMember: member });
    const refusal = refusing(member, body, status);
    const host = await agent.run((request) => (request.messages.length < 4 ? thought : refusal(request)));
    expectDone(host);
  });
});

describe('an agent server that gets them', () => {
  const native = nativeServer();

  it('uses them, keeps their secrets off its disk and out of events, and forgets them with the address', async () => {
    const { server, llm } = native();
    const { client } = server;
    const model = { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url };
    const parameters = { temperature: 0.5, extra_headers: { 'x-gateway-key': 'key-of-the-gateway' } };
    const agentOf = { agent: { kind: 'Agent', llm: { ...model, ...parameters } } };
    const id = await native().begin(inOrder(say('The key is key-of-the-gateway.')), agentOf);
    await native().talk(id);
    expect(llm.requests[0]?.headers['x-gateway-key']).toBe('key-of-the-gateway');
    expect(llm.requests[0]?.body['temperature']).toBe(0.5);
    expect(JSON.stringify(await client.events(id))).not.toContain('key-of-the-gateway');
    const record = path.join(server.folderOf(id), 'conversation.json');
    expect(await readFile(record, 'utf8')).not.toContain('key-of-the-gateway');

    const changed = { llm_parameters: { temperature: 1, max_output_tokens: 99 } };
    await client.post(`/api/conversations/${id}/credentials`, changed);
    await native().talk(id);
    expect(llm.requests[1]?.body).toMatchObject({ temperature: 1, max_tokens: 99 });
    expect(llm.requests[1]?.headers['x-gateway-key']).toBeUndefined();

    await client.post(`/api/conversations/${id}/switch_llm`, {
      llm: { ...model, model: 'openai/other', top_p: 0.9 },
    });
    await native().talk(id);
    expect(llm.requests[2]?.body).toMatchObject({ model: 'other', top_p: 0.9 });
    expect(llm.requests[2]?.body['temperature']).toBeUndefined();
  });
});

// vitali87/code-graph-rag#282: a provider gets LiteLLM's prefix. openclaw/openclaw#48107: a query that is lost.
it.each([
  ['ollama_chat/qwen3:8b', '/', 'qwen3:8b', '/v1/chat/completions'],
  ['gpt-5', '/v1/chat/completions?a=1&b=x%26y', 'gpt-5', '/v1/chat/completions?a=1&b=x%26y'],
])('%s at %s is called as %s at %s', async (model, path, name, url) => {
  const baseUrl = new URL(agent.llm.url).origin + path;
  const host = await agent.run(inOrder(say('done')), { llm: { model, apiKey: 'k', baseUrl } });
  expect(host.status).toBe('finished');
  expect(agent.llm.requests).toMatchObject([{ model: name, url }]);
});

// LLM-Red-Team/kimi-cc#11: Z.ai, Moonshot, MiniMax and DeepSeek offer Anthropic's form at such addresses.
describe("an address of Anthropic's form", () => {
  const ask = async (model: string, path: string, parameters: ModelParameters = {}) => {
    const gateway = await ScriptedAnthropic.start([{ text: 'done', usage: { input: 1, output: 1 } }]);
    const baseUrl = new URL(gateway.url).origin + path;
    const host = await agent.run(inOrder(), { llm: { model, apiKey: 'k', baseUrl, parameters } });
    await gateway.close();
    return { host, gateway };
  };

  it.each<[string, string, ModelParameters, string, string]>([
    ['zai/glm-5', '/api/anthropic', {}, 'glm-5', '/api/anthropic/v1/messages'],
    ['anthropic/kimi-k3', '/anthropic/v1/', {}, 'kimi-k3', '/anthropic/v1/messages'],
    ['claude-sonnet-5', '/v1', { api: 'anthropic' }, 'claude-sonnet-5', '/v1/messages'],
  ])('%s at %s with %j is called as %s at %s', async (model, path, parameters, name, called) => {
    const { host, gateway } = await ask(model, path, parameters);
    expect(host.status).toBe('finished');
    expect(gateway.requests).toMatchObject([
      { path: called, body: { model: name }, headers: { 'x-api-key': 'k', authorization: 'Bearer k' } },
    ]);
    // The SDK knows Anthropic's models, and gives others very little.
    expect(gateway.requests[0]?.body['max_tokens']).toBeGreaterThanOrEqual(16_384);
  });

  it.each<[ModelParameters, string]>([
    [{}, 'set api to anthropic'],
    [{ api: 'anthropic' }, 'set api to openai'],
  ])('is named where there is none: %j', async (parameters, hint) => {
    const path = parameters.api === undefined ? '/nothing' : '/nothing/here';
    const baseUrl = new URL(agent.llm.url).origin + path;
    const host = await agent.run(inOrder(), { llm: { model: 'm', apiKey: 'k', baseUrl, parameters } });
    expect(host.status).toBe('error');
    expect(host.ofKind('ConversationErrorEvent')[0]?.detail).toContain(hint);
  });

  it('is not spoken of where only the model is missing', async () => {
    const message = 'The model `m` does not exist or you do not have access to it.';
    const host = await agent.run(inOrder(fails(404, message)));
    expect(host.ofKind('ConversationErrorEvent')[0]?.detail).not.toContain('api');
  });
});

const MARK = { type: 'ephemeral' };
const modelNamed = (model: string) => ({ llm: { model, apiKey: 'k', baseUrl: agent.llm.url } });
const think = call('think', { thought: 'x' });
const marksOf = ({ body }: ChatRequest): number => JSON.stringify(body).split('"cache_control"').length - 1;

// letta-ai/letta#3350, anomalyco/opencode#39009, cline/cline#14332, NousResearch/hermes-agent#84506: up to ten times the price.
describe('Claude behind a gateway', () => {
  it.each([
    'openrouter/anthropic/claude-sonnet-5',
    'litellm_proxy/claude-opus-5',
    'openai/eu.anthropic.claude-5-v1:0',
  ])('is told what to cache: %s', async (model) => {
    const host = await agent.run(inOrder(think, think, think, say('Done.')), modelNamed(model));
    expect(host.status).toBe('finished');
    expect(agent.llm.requests.map(marksOf)).toEqual([3, 4, 4, 4]);
    const { body } = agent.llm.requests[3] ?? { body: {} };
    const messages = jsonList(body, 'messages');
    const marked = messages.filter(
      (message) => jsonAt(jsonList(message, 'content')[0], 'cache_control') !== undefined,
    );
    expect(marked.map((message) => jsonAt(message, 'role'))).toEqual(['system', 'tool', 'tool']);
    expect(marked.at(-1)).toBe(messages.at(-1));
    expect(jsonList(marked[0], 'content')[0]).toMatchObject({ type: 'text', cache_control: MARK });
    expect(jsonList(body, 'tools').map((tool) => jsonAt(tool, 'cache_control'))).toEqual([
      ...Array.from({ length: jsonList(body, 'tools').length - 1 }),
      MARK,
    ]);
    expect(agent.llm.refusals).toEqual([]);
  });

  it.each<[string, ScriptedAnswer]>([
    ['by name', fails(400, 'messages.0.content.0.cache_control: Extra inputs are not permitted')],
    ['by the form of texts', fails(422, 'messages[0].content: Input should be a valid string')],
  ])('that refuses the marks (%s) is asked without them for the whole conversation', async (_, refusal) => {
    const script = (request: ChatRequest) => (marksOf(request) > 0 ? refusal : say('Done.'));
    const host = await agent.run(script, modelNamed('openai/claude-sonnet-5'));
    expect(host.status).toBe('finished');
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests.map(marksOf)).toEqual([3, 0, 0]);
  });

  it('keeps the marks where the request is refused for another reason', async () => {
    const host = await agent.run(() => fails(400, 'no such thing'), modelNamed('openai/claude-sonnet-5'));
    expect(host.status).toBe('error');
    agent.llm.script = () => say('Done.');
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests.map(marksOf)).toEqual([3, 0, 4]);
  });
});

it('another model gets no marks', async () => {
  await agent.run(inOrder(say('Done.')), modelNamed('openai/gpt-4.1'));
  expect(agent.llm.requests.map(marksOf)).toEqual([0]);
});
