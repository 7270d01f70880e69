import { describe, expect, it } from '@jest/globals';
import { textOfCall } from '../../src/engine/native/text-tools.js';
import { fails, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, nativeAgent } from './native-agent.js';

const agent = nativeAgent();
const llm = (parameters: object = {}, model = 'openai/scripted') => ({
  llm: { model, apiKey: 'k', baseUrl: agent.llm.url, parameters },
});
const inText = { native_tool_calling: false };

// anthropics/claude-code#65363, #90268, can1357/oh-my-pi#8701: a model writes the same for as long as it may.
describe('an answer without end', () => {
  const sentence = 'And now I will look at the file, and then I will tell you what I have found in it. ';
  const endless = say(`Well.\n${sentence.repeat(400)}`);

  it.each([
    ['in words', endless, {}],
    ['in a text that is held back', endless, inText],
    ['in thoughts', { kind: 'answer' as const, reasoning: sentence.repeat(400), text: 'x' }, {}],
    ['of one mark', say(`Well: ${'!'.repeat(4_000)}`), {}],
    ['in long parts', say(`Well: ${'abc '.repeat(90).concat('; ', 'de '.repeat(90)).repeat(20)}`), {}],
  ])('is cut, told, and asked for again once: %s', async (_, answer, parameters) => {
    const host = await agent.run(inOrder(answer, say('Done.')), llm(parameters));
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual(['ModelRepeats']);
    expect(answersOf(host)).toEqual(['Done.']);
    // It is paid for.
    expect(host.usage).toMatchObject([{ isStep: false }, { isStep: true }]);
  });

  it('ends the run the second time, with what may help', async () => {
    const host = await agent.run(() => endless, llm());
    expect(host.status).toBe('error');
    expect(agent.llm.requests).toHaveLength(2);
    expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({
      code: 'ModelRepeats',
      detail: expect.stringContaining('temperature'),
    });
  });

  it.each([
    ['seven times the same', sentence.padEnd(200, '.').repeat(7)],
    ['lines that resemble each other', Array.from({ length: 900 }, (_, line) => `- item ${line}\n`).join('')],
  ])('is none with %s', async (_, text) => {
    const host = await agent.run(inOrder(say(text)), llm());
    expect([codesOf(host), answersOf(host)]).toEqual([[], [text]]);
  });

  it('has an end by itself, where no other is set', async () => {
    await agent.run(inOrder(say('Done.')), llm());
    expect(agent.llm.requests[0]?.body).toMatchObject({ max_tokens: 16_384 });
    await agent.run(inOrder(say('Done.')), llm({ max_output_tokens: 99 }));
    expect(agent.llm.requests[0]?.body).toMatchObject({ max_tokens: 99 });
    await agent.run(inOrder(say('Done.')), llm({}, 'openai/gpt-4'));
    expect(agent.llm.requests[0]?.body).toMatchObject({ max_tokens: 8_192 });
  });

  it.each([
    "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 tokens and your request has 1909 input tokens",
    "This model's maximum context length is 8192 tokens. However, you requested 18293 tokens (1909 in the messages, 16384 in the completion).",
    '`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 1909 `inputs` tokens and 16384 `max_new_tokens`',
  ])('has none where that is more than the model takes: %s', async (message) => {
    const host = await agent.run(
      ({ body }) => ('max_tokens' in body ? fails(400, message) : say('Done.')),
      llm(),
    );
    expect([host.status, codesOf(host)]).toEqual(['finished', []]);
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests).toHaveLength(3);
  });
});

it('the length of a text that is held back is shown while it is written', async () => {
  const text = `I look around.\n${textOfCall('finish', { message: 'Done.' })}`;
  const host = await agent.run(inOrder(say(text)), llm(inText));
  expect(host.drafts[0]).toEqual({ text: '', reasoning: expect.stringMatching(/Held back.*: \d+$/) });
});
