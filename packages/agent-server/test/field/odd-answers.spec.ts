import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { finalAnswer } from '../../src/engine/agent-events.js';
import {
  call,
  endsWith,
  fails,
  page,
  refuses,
  say,
  type ScriptedAnswer,
} from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, expectDone, expectTold, nativeAgent } from './native-agent.js';
import { textOfCall } from '../../src/engine/native/text-tools.js';

const agent = nativeAgent();

// Hal0ai/hal0#1598, CherryHQ/stella#1079: half an answer ends as finished.
describe('an answer that is cut at the limit of its length', () => {
  it.each(['length', 'MAX_TOKENS'])('is continued (%s)', async (finish) => {
    const host = await agent.run(inOrder(endsWith(finish, { text: 'one, two, ' }), say('three')));
    expectDone(host);
    expect(answersOf(host)).toEqual(['one, two, ', 'three']);
    expect(finalAnswer(host.events())).toBe('one, two, three');
    expect(agent.llm.requests[1]?.messages.slice(-2)).toMatchObject([
      { role: 'assistant', content: 'one, two, ' },
      { role: 'user', content: expect.stringContaining('cut at the limit') },
    ]);
  });

  it('is continued three times, then an event says so', async () => {
    const host = await agent.run(() => endsWith('length', { text: 'more ' }));
    expect(agent.llm.requests).toHaveLength(4);
    expectTold(host, 'LlmAnswerCut', 'max_output_tokens');
    expect(answersOf(host)).toHaveLength(4);
    agent.llm.script = () => say('the end');
    await agent.goOn(host, 'Go on.');
    expect(host.status).toBe('finished');
  });

  it('counts only those in a row', async () => {
    const host = await agent.run(({ index }) =>
      index === 8
        ? say('done')
        : index % 2 === 0
          ? endsWith('length', { text: 'part ' })
          : call('think', { thought: `${index}` }),
    );
    expectDone(host);
  });

  it('may have reached the limit while it reasoned', async () => {
    const host = await agent.run(inOrder(endsWith('length', { reasoning: 'hm, hm' }), say('done')));
    expect(host.status).toBe('finished');
    expect(answersOf(host)).toEqual(['done']);
  });
});

// vllm-project/vllm#46303, OpenRouterTeam/typescript-agent#125: a call that was cut is executed.
describe('a call that is cut at the limit of the length', () => {
  it.each([
    ['in its JSON', '{"command": "touch cut'],
    ['but looks complete', '{"command": "touch cut"}'],
    ['before its arguments', ''],
  ])('is not run: %s', async (_, args) => {
    const calls = [
      { name: 'terminal', arguments: { command: 'touch whole' } },
      { name: 'terminal', arguments: args },
    ];
    const host = await agent.run(inOrder(endsWith('length', { calls }), say('I see.')));
    expect(host.status).toBe('finished');
    expect(existsSync(join(agent.folder, 'cut'))).toBe(false);
    expect(existsSync(join(agent.folder, 'whole'))).toBe(true);
    expect(host.ofKind('AgentErrorEvent')).toMatchObject([
      { error: expect.stringContaining('Not run: your answer was cut') },
    ]);
    expect(agent.llm.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('cut at the limit'),
    });
  });

  it('ends the run the fourth time in a row', async () => {
    const calls = [{ name: 'terminal', arguments: '{"command": "cat <<' }];
    const host = await agent.run(() => endsWith('length', { calls }));
    expect(host.status).not.toBe('finished');
    expect(agent.llm.requests).toHaveLength(4);
    expect(codesOf(host)).toEqual(['LlmAnswerCut']);
  });
});

// cline/cline#13302, openai/openai-agents-python#4159: a filtered answer is asked for, and paid, again and again.
it.each([
  ['content_filter', { text: '' }],
  ['content_filter', { text: 'I was about to' }],
  ['refusal', { text: 'I cannot help with that.' }],
  ['content_filter', { calls: [{ name: 'terminal', arguments: { command: 'touch filtered' } }] }],
])('an answer that is filtered is named, and not asked for again: %s %j', async (finish, answer) => {
  const host = await agent.run(() => endsWith(finish, answer));
  expect(agent.llm.requests).toHaveLength(1);
  expect(agent.pauses).toEqual([]);
  expectTold(host, 'LlmContentFiltered', 'content filter');
  expect(answersOf(host)).toEqual('text' in answer && answer.text !== '' ? [answer.text] : []);
  expect(existsSync(join(agent.folder, 'filtered'))).toBe(false);
  agent.llm.script = () => say('Gladly.');
  await agent.goOn(host, 'Something else, then.');
  expect(host.status).toBe('finished');
});

// BerriAI/litellm#16651, pydantic/pydantic-ai#3095: the agent says what it is about to do, and the run ends as finished.
// pydantic/pydantic-ai#2759, huggingface/smolagents#1119: Groq refuses what its model has written.
describe('an answer that its provider broke off, or could not read', () => {
  const error = {
    message:
      "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    type: 'invalid_request_error',
    code: 'tool_use_failed',
    failed_generation: '<function=terminal>{"command"',
  };
  const touch = [{ name: 'terminal', arguments: { command: 'touch broken' } }];
  it.each<ScriptedAnswer>([
    endsWith('MALFORMED_FUNCTION_CALL', { text: 'I will now run the tests.' }),
    endsWith('malformed_function_call', { calls: touch }),
    refuses(400, { error }),
    { kind: 'streamError', text: '', error },
  ])('is asked for again: %j', async (answer) => {
    const host = await agent.run(inOrder(answer, answer, say('Done.')));
    expect(host.status).toBe('finished');
    expect(answersOf(host)).toEqual(['Done.']);
    expect(existsSync(join(agent.folder, 'broken'))).toBe(false);
  });

  it.each([endsWith('error', { text: 'I will now' }), say('')])(
    'is told when that does not help: %j',
    async (answer) => {
      const host = await agent.run(() => answer);
      expect(host.status).toBe('error');
      expect(agent.llm.requests).toHaveLength(4);
      // Paid for, and no steps of the agent.
      expect(host.usage.map(({ isStep }) => isStep)).toEqual([false, false, false, false]);
      expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({
        code: 'LlmEmptyAnswer',
        detail: expect.stringContaining('Send a message'),
      });
    },
  );
});

// openclaw/openclaw#84697, beekeeper-studio#4188: the address of a web page reads as "could not be reached".
describe('an answer with status 200 that is no completion', () => {
  it.each([
    [page('<!DOCTYPE html>\n<html><head><title>New API</title></head></html>'), 'an HTML page (“New API”)'],
    [page('\n\n<html><body>hello</body></html>', 'text/plain'), 'an HTML page'],
    [page('{"status":"ok","version":3}', 'application/json'), 'JSON ({"status":"ok","version":3})'],
    [page('[]', 'application/json'), 'JSON ([])'],
    [page('Ollama is running', 'text/plain'), 'text (Ollama is running)'],
    [page('{"choices":[]}', 'text/event-stream'), 'JSON ({"choices":[]})'],
  ])('is named, with what to check: %j', async (answer, what) => {
    const host = await agent.run(inOrder(answer));
    expectTold(host, 'LlmUnexpectedAnswer');
    const [{ detail } = { detail: '' }] = host.ofKind('ConversationErrorEvent');
    expect(detail).toContain(`answered 200 with ${what}`);
    expect(detail).toContain('/v1');
    expect(agent.llm.requests).toHaveLength(1);
  });

  it('is suggested too for an address that does not exist', async () => {
    const host = await agent.run(inOrder(say('done')), { url: agent.llm.url.replace('/v1', '') });
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { code: 'LlmRejected', detail: expect.stringMatching(/answered 404: .*llm_base_url.*\/v1/) },
    ]);
  });
});

// vercel/ai: servers that ignore `stream`.
it.each<[string, ScriptedAnswer]>([
  ['words', { kind: 'answer', text: 'All is well.', reasoning: 'hm', isWhole: true }],
  [
    'a call',
    { kind: 'answer', isWhole: true, calls: [{ name: 'finish', arguments: { message: 'All is well.' } }] },
  ],
])('a completion in one piece counts as an answer: %s', async (_, answer) => {
  const host = await agent.run(inOrder(answer));
  expectDone(host);
  expect(agent.llm.requests).toHaveLength(1);
});

// OpenRouter sends its errors with status 200, before or in the middle of a stream.
describe('an error with status 200', () => {
  const breaksOff = (error: object): ScriptedAnswer => ({ kind: 'streamError', text: 'Well', error });
  it.each<[ScriptedAnswer, string, number]>([
    [refuses(200, { error: { code: 429, message: 'slow down' } }), 'LlmRateLimited', 6],
    [refuses(200, { error: { code: 401, message: 'no key' } }), 'LlmAuthenticationFailed', 1],
    [refuses(200, { error: { message: 'who knows' } }), 'LlmUnavailable', 6],
    [breaksOff({ code: 401, message: 'key revoked' }), 'LlmAuthenticationFailed', 1],
    [breaksOff({ type: 'overloaded_error', message: 'busy' }), 'LlmUnavailable', 6],
    [breaksOff({ code: 'rate_limit_exceeded', message: 'try again in 3s' }), 'LlmRateLimited', 6],
    [breaksOff({ code: 'context_length_exceeded', message: 'no' }), 'LlmContextFull', 1],
  ])('is read as what it is: %j', async (answer, code, requests) => {
    const host = await agent.run(inOrder(answer));
    expect(codesOf(host).at(-1)).toBe(code);
    expect(answersOf(host)).toEqual([]);
    // A pause in whole seconds that is short is followed by one that fills the minute.
    expect(agent.llm.requests.length).toBeGreaterThanOrEqual(requests);
    expect(agent.llm.requests.length).toBeLessThanOrEqual(requests === 1 ? 1 : 7);
  });
});

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
    expectDone(host);
    await agent.goOn(host, 'Again.');
    expect(agent.llm.requests).toHaveLength(3);
    // bytedance/deer-flow#66: DeepSeek names the answer also where it has no limit.
    await agent.run(() => fails(400, message), llm());
    expect(agent.llm.requests).toHaveLength(2);
  });
});

it('the length of a text that is held back is shown while it is written', async () => {
  const text = `I look around.\n${textOfCall('finish', { message: 'Done.' })}`;
  const host = await agent.run(inOrder(say(text)), llm(inText));
  expect(host.drafts[0]).toEqual({ text: '', reasoning: expect.stringMatching(/Held back.*: \d+$/) });
});
