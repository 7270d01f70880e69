import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { call, endsWith, fails, refuses, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, type Script } from '../fakes/scripted-llm.js';
import { until } from '../../../../test/support/until.js';
import { answersOf, codesOf, expectDone, expectTold, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

// RooCodeInc/Roo-Code#2118, vercel/ai#18627, dimetron/pi-go#177: the time to wait stands only in the body.
describe('a provider that names when to try again', () => {
  const google = {
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      details: [{ '@type': 'RetryInfo', retryDelay: '45.5s' }],
    },
  };
  it.each([
    [refuses(429, [google]), 45_500],
    [fails(529, 'overloaded', { 'retry-after-ms': '1500' }), 1_500],
  ])('is asked again then: %j', async (refusal, pause) => {
    const host = await agent.run(inOrder(refusal, say('done')));
    expect(agent.pauses).toEqual([pause]);
    expectTold(host, 'LlmRetried', `in ${pause / 1000} s`, 'finished');
  });
});

it('a provider that stays busy is not waited for once the user pauses', async () => {
  const engine = new NativeEngine({
    wait: async (milliseconds, signal) => {
      await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
    },
  });
  agent.llm.script = inOrder(fails(429, 'slow', { 'retry-after': '120' }));
  const host = new MemoryEngineHost(engineSettings(agent.folder, agent.llm.url));
  await host.say('Please do it.');
  const ended = engine.run(host, new AbortController().signal);
  await until(() => codesOf(host).includes('LlmRetried'));
  host.pause = true;
  await ended;
  expect(host.status).toBe('paused');
  agent.llm.script = inOrder(say('done'));
  host.pause = false;
  await engine.run(host, new AbortController().signal);
  expect(host.status).toBe('finished');
  await engine.close();
});

const isCondensation = ({ text }: ChatRequest) => text.includes('You condense the earlier part');

/** In one piece, which is quicker. */
const step = (index: number, padding = '') =>
  call('think', { thought: `step ${index} ${padding}` }, { isWhole: true });
const refusal = refuses(400, { error: { message: 'no' } });

/** A model that works for six steps, fails at the seventh request, and goes on with a shorter history. */
function failsOnce(failure: ScriptedAnswer, summary = say('SUMMARY')): Script {
  return (request) => {
    if (isCondensation(request)) {
      return summary;
    }
    if (request.text.includes('SUMMARY')) {
      return say('done');
    }
    return request.index < 6 ? step(request.index) : failure;
  };
}

const FULL = refuses(400, { error: { code: 'context_length_exceeded', message: 'no' } });
// Anthropic and Z.ai end an answer so, with status 200.
const NO_ROOM = endsWith('model_context_window_exceeded', { text: 'I wi' });
it.each([
  [FULL, 1_000_000, []],
  [NO_ROOM, 1_000_000, []],
  [NO_ROOM, null, ['LlmHistoryRefused']],
])('a history that is too long is condensed: %j at %s', async (failure, condenserTokens, told) => {
  const host = await agent.run(failsOnce(failure), { condenserTokens });
  expect(host.status).toBe('finished');
  expect(codesOf(host)).toEqual(told);
  expect(answersOf(host)).toEqual(['done']);
});

// ollama/ollama#17427, earendil-works/pi#133: the model works without its instructions and tools.
it('is told of, once, where the server cuts it without a word', async () => {
  const usage = { promptTokens: 2_050, completionTokens: 10 };
  const host = await agent.run(
    inOrder(
      call('terminal', { command: 'seq 1 9000' }),
      call('think', { thought: 'x' }, { usage }),
      say('done', usage),
    ),
  );
  expectTold(host, 'PromptCut', /counted 2050 tokens .*num_ctx/, 'finished');
});

it('is none where the prompt leaves out earlier reasoning', async () => {
  const usage = { promptTokens: 6_000, completionTokens: 10 };
  const calls = [{ name: 'think', arguments: { thought: 'x' } }];
  const reasoning = Array.from({ length: 8_000 }, (_, line) => `hm ${line}`).join('\n');
  const thought: ScriptedAnswer = { kind: 'answer', reasoning, calls, usage, isWhole: true };
  const host = await agent.run(inOrder(thought, say('done', usage)));
  expectDone(host);
});

describe('a history', () => {
  it.each<[string, ScriptedAnswer]>([
    ['reasoned up to the limit of its answer', endsWith('length', { reasoning: 'hm' })],
    ['was filtered', endsWith('content_filter', { text: 'We' })],
  ])('is kept when the model that should condense it %s', async (_, summary) => {
    const host = await agent.run(failsOnce(FULL, summary), { condenserTokens: 1_000_000 });
    expect(host.ofKind('Condensation')).toEqual([]);
    expect(codesOf(host)).toEqual(['LlmContextFull']);
    expect(agent.llm.requests.filter(isCondensation)).toHaveLength(1);
  });

  // skorokithakis/stavrobot#28, justrach/codegraff#379: models that think until their answer is cut, or call a tool.
  it.each<[string, ScriptedAnswer]>([
    ['thoughts alone', endsWith('length', { reasoning: 'What was asked for? …' })],
    ['a blank', endsWith('length', { text: ' \n' })],
    ['a call', call('think', { thought: 'summary' })],
  ])('is kept when its summary is %s', async (_, summary) => {
    let steps = 0;
    const host = await agent.run(
      (request) => {
        steps += isCondensation(request) ? 0 : 1;
        return isCondensation(request) ? summary : steps < 12 ? step(steps, 'x'.repeat(1_000)) : say('done');
      },
      { condenserTokens: 2_000 },
    );
    expect(host.status).toBe('finished');
    expect(host.ofKind('Condensation')).toEqual([]);
    expect(agent.llm.requests.at(-1)?.text).toContain('step 1 ');
    // Paid for, but not at each step.
    const summaries = agent.llm.requests.filter(isCondensation).length;
    expect(summaries).toBeGreaterThan(0);
    expect(summaries).toBeLessThan(5);
    expect(host.usage).toHaveLength(agent.llm.requests.length);
  });
});

// All-Hands-AI/OpenHands, RooCodeInc/Roo-Code: a conversation that one odd item in its history ends for good.
describe('any other refusal of a long history', () => {
  it.each([
    [400, { error: { message: 'messages.3: something that only this server knows' } }],
    [422, { detail: [{ loc: ['body', 'messages', 3], msg: 'value is not right' }] }],
  ])('%d %j is answered by one condensation and one retry', async (status, body) => {
    const host = await agent.run(failsOnce(refuses(status, body)));
    expect(host.status).toBe('finished');
    expect(host.ofKind('Condensation')).toHaveLength(1);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      {
        source: 'environment',
        code: 'LlmHistoryRefused',
        detail: expect.stringContaining(`answered ${status}`),
      },
    ]);
  });

  it('is final the second time', async () => {
    const script: Script = (request) =>
      isCondensation(request) ? say('SUMMARY') : request.index < 6 ? step(request.index) : refusal;
    const host = await agent.run(script);
    expect(host.status).toBe('error');
    expect(codesOf(host)).toEqual(['LlmHistoryRefused', 'LlmRejected']);
    // Six steps, the refusal, the condensation, the retry.
    expect(agent.llm.requests).toHaveLength(9);
  });

  it('is final when the condensation is refused too', async () => {
    const host = await agent.run(({ index }) => (index < 6 ? step(index) : refusal));
    expect(codesOf(host)).toEqual(['LlmRejected']);
    expect(host.ofKind('Condensation')).toEqual([]);
  });

  it.each([
    [400, { error: { code: 'invalid_function_parameters', message: 'no' } }],
    [404, { error: { message: 'no such model' } }],
  ])('%d %j is final at once', async (status, body) => {
    const host = await agent.run(failsOnce(refuses(status, body)));
    expect(host.status).toBe('error');
    expect(host.ofKind('Condensation')).toEqual([]);
    expect(agent.llm.requests).toHaveLength(7);
  });

  it('is final at once when the history is short', async () => {
    const host = await agent.run(({ index }) => (index < 2 ? step(index) : refusal));
    expect(codesOf(host)).toEqual(['LlmRejected']);
    expect(agent.llm.requests).toHaveLength(3);
  });
});
