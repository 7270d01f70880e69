import { describe, expect, it } from '@jest/globals';
import { call, page, refuses, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

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
    expect(host.status).toBe('error');
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([{ code: 'LlmUnexpectedAnswer' }]);
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
describe('a completion in one piece', () => {
  it.each<[string, ScriptedAnswer]>([
    ['words', { kind: 'answer', text: 'All is well.', reasoning: 'hm', isWhole: true }],
    [
      'a call',
      { kind: 'answer', isWhole: true, calls: [{ name: 'finish', arguments: { message: 'All is well.' } }] },
    ],
  ])('counts as an answer: %s', async (_, answer) => {
    const host = await agent.run(inOrder(answer));
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual([]);
    expect(agent.llm.requests).toHaveLength(1);
  });
});

// OpenRouter sends its errors with status 200, before or in the middle of a stream.
describe('an error with status 200', () => {
  it.each<[ScriptedAnswer, string, number]>([
    [refuses(200, { error: { code: 429, message: 'slow down' } }), 'LlmRateLimited', 6],
    [refuses(200, { error: { code: 401, message: 'no key' } }), 'LlmAuthenticationFailed', 1],
    [refuses(200, { error: { message: 'who knows' } }), 'LlmUnavailable', 6],
    [
      { kind: 'streamError', text: 'Well', error: { code: 401, message: 'key revoked' } },
      'LlmAuthenticationFailed',
      1,
    ],
    [
      { kind: 'streamError', text: 'Well', error: { type: 'overloaded_error', message: 'busy' } },
      'LlmUnavailable',
      6,
    ],
    [
      {
        kind: 'streamError',
        text: 'Well',
        error: { code: 'rate_limit_exceeded', message: 'try again in 3s' },
      },
      'LlmRateLimited',
      6,
    ],
    [
      { kind: 'streamError', text: 'Well', error: { code: 'context_length_exceeded', message: 'no' } },
      'LlmContextFull',
      1,
    ],
  ])('is read as what it is: %j', async (answer, code, requests) => {
    const host = await agent.run(inOrder(answer));
    expect(codesOf(host).at(-1)).toBe(code);
    expect(answersOf(host)).toEqual([]);
    // A pause in whole seconds that is short is followed by one that fills the minute.
    expect(agent.llm.requests.length).toBeGreaterThanOrEqual(requests);
    expect(agent.llm.requests.length).toBeLessThanOrEqual(requests === 1 ? 1 : 7);
  });

  it('leaves nothing of the answer', async () => {
    const error = { code: 502, message: 'the upstream is gone' };
    const host = await agent.run(
      inOrder({ kind: 'streamError', text: 'Half', error }, call('finish', { message: 'Done.' })),
    );
    expect(host.status).toBe('finished');
    expect(answersOf(host)).toEqual([]);
  });
});
