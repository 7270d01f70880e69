import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { finalAnswer } from '../../src/engine/agent-events.js';
import { call, endsWith, refuses, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

// Hal0ai/hal0#1598, CherryHQ/stella#1079: half an answer ends as finished.
describe('an answer that is cut at the limit of its length', () => {
  it.each(['length', 'max_tokens', 'MAX_TOKENS'])('is continued (%s)', async (finish) => {
    const host = await agent.run(inOrder(endsWith(finish, { text: 'one, two, ' }), say('three')));
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual([]);
    expect(answersOf(host)).toEqual(['one, two, ', 'three']);
    expect(finalAnswer(host.events())).toBe('one, two, three');
    expect(agent.llm.requests[1]?.messages.slice(-2)).toMatchObject([
      { role: 'assistant', content: 'one, two, ' },
      { role: 'user', content: expect.stringContaining('cut at the limit') },
    ]);
  });

  it('is continued three times, then an event says so', async () => {
    const host = await agent.run(() => endsWith('length', { text: 'more ' }));
    expect(host.status).toBe('error');
    expect(agent.llm.requests).toHaveLength(4);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { source: 'environment', code: 'LlmAnswerCut', detail: expect.stringContaining('max_output_tokens') },
    ]);
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
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual([]);
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
describe('an answer that is filtered', () => {
  it.each([
    ['content_filter', { text: '' }],
    ['content_filter', { text: 'I was about to' }],
    ['SAFETY', { text: '' }],
    ['refusal', { text: 'I cannot help with that.' }],
    ['content_filter', { calls: [{ name: 'terminal', arguments: { command: 'touch filtered' } }] }],
  ])('is named, and not asked for again: %s %j', async (finish, answer) => {
    const host = await agent.run(() => endsWith(finish, answer));
    expect(host.status).toBe('error');
    expect(agent.llm.requests).toHaveLength(1);
    expect(agent.pauses).toEqual([]);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      {
        source: 'environment',
        code: 'LlmContentFiltered',
        detail: expect.stringContaining('content filter'),
      },
    ]);
    expect(answersOf(host)).toEqual('text' in answer && answer.text !== '' ? [answer.text] : []);
    expect(existsSync(join(agent.folder, 'filtered'))).toBe(false);
    agent.llm.script = () => say('Gladly.');
    await agent.goOn(host, 'Something else, then.');
    expect(host.status).toBe('finished');
  });
});

// BerriAI/litellm#16651, pydantic/pydantic-ai#3095: the agent says what it is about to do, and the run ends as finished.
describe('an answer that its provider broke off', () => {
  it.each([
    ['MALFORMED_FUNCTION_CALL', { text: 'I will now run the tests.' }],
    ['error', { text: 'I will now' }],
    ['insufficient_system_resource', { text: 'I will now' }],
    ['malformed_function_call', { calls: [{ name: 'terminal', arguments: { command: 'touch broken' } }] }],
  ])('is asked for again: %s %j', async (finish, answer) => {
    const host = await agent.run(inOrder(endsWith(finish, answer), say('Done.')));
    expect(host.status).toBe('finished');
    expect(answersOf(host)).toEqual(['Done.']);
    expect(existsSync(join(agent.folder, 'broken'))).toBe(false);
  });

  it('is told when that does not help', async () => {
    const host = await agent.run(() => endsWith('error', { text: 'I will now' }));
    expect(host.status).toBe('error');
    expect(agent.llm.requests).toHaveLength(4);
    // Paid for, and no steps of the agent.
    expect(host.usage.map(({ isStep }) => isStep)).toEqual([false, false, false, false]);
    expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({
      code: 'LlmEmptyAnswer',
      detail: expect.stringContaining('Send a message'),
    });
  });
});

// pydantic/pydantic-ai#2759, huggingface/smolagents#1119: Groq refuses what its model has written.
describe('a call that the server of the model could not read', () => {
  const error = {
    message:
      "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    type: 'invalid_request_error',
    code: 'tool_use_failed',
    failed_generation: '<function=terminal>{"command"',
  };
  it.each([refuses(400, { error }), { kind: 'streamError' as const, text: '', error }])(
    'is asked for again: %j',
    async (refusal) => {
      const host = await agent.run(inOrder(refusal, refusal, say('Done.')));
      expect(host.status).toBe('finished');
      expect(answersOf(host)).toEqual(['Done.']);
    },
  );

  it('is told when that does not help', async () => {
    const host = await agent.run(() => refuses(400, { error }));
    expect(agent.llm.requests).toHaveLength(4);
    expect(host.ofKind('ConversationErrorEvent').at(-1)?.detail).toContain('Failed to call a function');
  });
});
