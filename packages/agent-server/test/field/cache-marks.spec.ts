import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { call, fails, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent } from './native-agent.js';

const agent = nativeAgent();
const MARK = { type: 'ephemeral' };
const llm = (model: string) => ({ llm: { model, apiKey: 'k', baseUrl: agent.llm.url } });
const think = call('think', { thought: 'x' });
const marksOf = ({ body }: ChatRequest): number => JSON.stringify(body).split('"cache_control"').length - 1;

// letta-ai/letta#3350, anomalyco/opencode#39009, cline/cline#14332, NousResearch/hermes-agent#84506: up to ten times the price.
describe('Claude behind a gateway', () => {
  it.each([
    'openrouter/anthropic/claude-sonnet-5',
    'litellm_proxy/claude-opus-5',
    'openai/eu.anthropic.claude-5-v1:0',
  ])('is told what to cache: %s', async (model) => {
    const host = await agent.run(inOrder(think, think, think, say('Done.')), llm(model));
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
    const host = await agent.run(script, llm('openai/claude-sonnet-5'));
    expect(host.status).toBe('finished');
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests.map(marksOf)).toEqual([3, 0, 0]);
  });

  it('keeps the marks where the request is refused for another reason', async () => {
    const host = await agent.run(() => fails(400, 'no such thing'), llm('openai/claude-sonnet-5'));
    expect(host.status).toBe('error');
    agent.llm.script = () => say('Done.');
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests.map(marksOf)).toEqual([3, 0, 4]);
  });
});

it('another model gets no marks', async () => {
  await agent.run(inOrder(say('Done.')), llm('openai/gpt-4.1'));
  expect(agent.llm.requests.map(marksOf)).toEqual([0]);
});
