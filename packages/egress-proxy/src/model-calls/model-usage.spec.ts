import { describe, expect, it } from '@jest/globals';
import {
  AskedModelReader,
  type CallUsage,
  isEventStream,
  isModelCall,
  ModelUsageReader,
} from './model-usage.js';

type Counts = Partial<CallUsage>;

function read(text: string, contentType: string, size: number): CallUsage | null {
  const reader = new ModelUsageReader(isEventStream({ headers: { 'content-type': contentType } }));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) {
    reader.push(bytes.subarray(at, at + size));
  }
  return reader.end();
}

function events(...all: object[]): string {
  return all.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

const chunk = (more: object): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  model: 'm-1',
  choices: [{ index: 0, delta: { content: 'Say {"usage":{"prompt_tokens":1}}' } }],
  ...more,
});

describe('the usage of an answer', () => {
  it.each<[string, object, Counts | null]>([
    [
      'of chat completions, with what came from the cache',
      {
        model: 'm',
        usage: { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } },
      },
      { input: 10, output: 5, cacheRead: 4, model: 'm' },
    ],
    [
      'of OpenRouter, with its cost',
      {
        usage: {
          prompt_tokens: 194,
          completion_tokens: 2,
          cost: 0.95,
          prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 100 },
        },
      },
      { input: 194, output: 2, cacheWrite: 100, cost: 0.95 },
    ],
    [
      'of DeepSeek',
      {
        usage: {
          prompt_tokens: 9,
          completion_tokens: 1,
          prompt_cache_hit_tokens: 8,
          prompt_cache_miss_tokens: 1,
        },
      },
      { input: 9, output: 1, cacheRead: 8 },
    ],
    [
      'of llama.cpp',
      { usage: { completion_tokens: 3, prompt_tokens: 7, total_tokens: 10 }, timings: { x: 1 } },
      { input: 7, output: 3 },
    ],
    [
      'of responses, where output has details, too',
      {
        model: 'm',
        output: [{ usage: { input_tokens: 1 } }],
        usage: {
          input_tokens: 20,
          input_tokens_details: { cached_tokens: 16 },
          output_tokens: 6,
          output_tokens_details: { reasoning_tokens: 4 },
        },
      },
      { input: 20, output: 6, cacheRead: 16, model: 'm' },
    ],
    [
      'of messages, whose input is without the cache',
      {
        type: 'message',
        model: 'm',
        content: [{ type: 'tool_use', input: { usage: { input_tokens: 0 } } }],
        usage: {
          input_tokens: 3,
          cache_read_input_tokens: 40,
          cache_creation_input_tokens: 7,
          output_tokens: 5,
        },
      },
      { input: 50, output: 5, cacheRead: 40, cacheWrite: 7, model: 'm' },
    ],
    [
      'of Gemini',
      {
        candidates: [],
        usageMetadata: {
          promptTokenCount: 8,
          candidatesTokenCount: 2,
          thoughtsTokenCount: 3,
          cachedContentTokenCount: 6,
        },
        modelVersion: 'gemini-3',
      },
      { input: 8, output: 5, cacheRead: 6, model: 'gemini-3' },
    ],
    [
      'of embeddings',
      { model: 'e', usage: { prompt_tokens: 8, total_tokens: 8 } },
      { input: 8, output: 0, model: 'e' },
    ],
    ['none of an error', { error: { message: 'no' } }, null],
    [
      'none of what is no count',
      { usage: { prompt_tokens: -1, completion_tokens: '5', input_tokens: 1.5, output_tokens: 1e300 } },
      null,
    ],
    [
      'no more from the cache than there is',
      { usage: { prompt_tokens: 5, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 50 } } },
      { input: 5, output: 1, cacheRead: 5 },
    ],
  ])('%s', (_what, body, expected) => {
    const wanted = expected && { cacheRead: 0, cacheWrite: 0, cost: null, model: null, ...expected };
    for (const size of [1, 7, 10_000]) {
      expect(read(JSON.stringify(body, null, 1), 'application/json; charset=utf-8', size)).toEqual(wanted);
    }
  });

  it.each<[string, string, Counts | null]>([
    [
      'of chat completions in the last chunk, and null before',
      `${events(chunk({ usage: null }), chunk({ usage: null }), chunk({ choices: [], usage: { prompt_tokens: 4, completion_tokens: 2 } }))}data: [DONE]\n\n`,
      { input: 4, output: 2, model: 'm-1' },
    ],
    [
      'of servers that count in every chunk, once',
      events(
        chunk({ usage: { prompt_tokens: 4, completion_tokens: 1 } }),
        chunk({ usage: { prompt_tokens: 4, completion_tokens: 2 } }),
      ),
      { input: 4, output: 2, model: 'm-1' },
    ],
    [
      'of messages, whose counts are those of the whole',
      events(
        {
          type: 'message_start',
          message: {
            model: 'c',
            content: [],
            usage: { input_tokens: 3, cache_read_input_tokens: 40, output_tokens: 1 },
          },
        },
        {
          type: 'content_block_delta',
          delta: { type: 'input_json_delta', partial_json: '{"usage":{"input_tokens":0}}' },
        },
        { type: 'message_delta', delta: {}, usage: { output_tokens: 9 } },
      ),
      { input: 43, output: 9, cacheRead: 40, model: 'c' },
    ],
    [
      'of gateways that know the cache at the end alone',
      events(
        { type: 'message_start', message: { model: 'q', usage: { input_tokens: 8834, output_tokens: 0 } } },
        {
          type: 'message_delta',
          usage: { input_tokens: 18, output_tokens: 426, cache_read_input_tokens: 8831 },
        },
      ),
      { input: 8849, output: 426, cacheRead: 8831, model: 'q' },
    ],
    [
      'of messages that broke off',
      events({
        type: 'message_start',
        message: { model: 'c', usage: { input_tokens: 3, output_tokens: 1 } },
      }),
      { input: 3, output: 1, model: 'c' },
    ],
    [
      'of responses',
      events(
        { type: 'response.created', response: { model: 'r', usage: null } },
        {
          type: 'response.completed',
          response: { model: 'r', output: [], usage: { input_tokens: 5, output_tokens: 6 } },
        },
      ),
      { input: 5, output: 6, model: 'r' },
    ],
    [
      'without a space, an end, or line feeds alone',
      'data:{"usage":{"prompt_tokens":1,"completion_tokens":2}}\r\n: comment\r\ndata: x',
      { input: 1, output: 2 },
    ],
    [
      'not of other lines',
      'event: {"usage":{"prompt_tokens":1}}\ndat: {"usage":{"prompt_tokens":1}}\n',
      null,
    ],
  ])('%s, streamed', (_what, text, expected) => {
    const wanted = expected && { cacheRead: 0, cacheWrite: 0, cost: null, model: null, ...expected };
    for (const size of [1, 7, 10_000]) {
      expect(read(text, 'text/event-stream; charset=utf-8', size)).toEqual(wanted);
    }
  });

  it('is not looked for in what has no end', () => {
    const reader = new ModelUsageReader(false);
    const mebibyte = Buffer.alloc(1024 * 1024, ' ');
    for (let count = 0; count < 64; count += 1) {
      reader.push(mebibyte);
    }
    reader.push(Buffer.from('{"usage":{"prompt_tokens":1,"completion_tokens":1}}'));
    expect(reader.end()).toBeNull();
  });
});

it.each([
  ['NUL', 'm\0', 'm\u{fffd}'],
  ['half a character', 'm\ud83d', 'm\u{fffd}'],
  ['more than it takes', '\u4e00'.repeat(1_000), '\u4e00'.repeat(200)],
  ['a character at the cut', `${'m'.repeat(199)}\u{1f600}`, `${'m'.repeat(199)}\u{fffd}`],
])('a model is named as the service takes it, without %s', (_what, model, expected) => {
  const asked = new AskedModelReader();
  asked.push(Buffer.from(JSON.stringify({ model })));
  expect(asked.model).toBe(expected);
  const answer = JSON.stringify({ model, usage: { prompt_tokens: 1, completion_tokens: 1 } });
  expect(read(answer, 'application/json', 10_000)?.model).toBe(expected);
});

it.each([
  ['POST', '/v1/chat/completions', true],
  ['POST', '/openai/deployments/x/chat/completions?api-version=1', true],
  ['POST', '/v1/responses', true],
  ['POST', '/v1/messages', true],
  ['POST', '/v1beta/models/gemini-3:streamGenerateContent?alt=sse', true],
  ['POST', '/v1/chat/complet%69ons', true],
  ['POST', '/V1/Chat/Completions', true],
  ['POST', '/v1beta/models/gemini-3%3agenerateContent', true],
  ['POST', '/v1/x/../messages//?a', true],
  ['GET', '/v1/responses/resp_1', false],
  ['GET', '/v1/messages', false],
  ['POST', '/v1/messages/count_tokens', false],
  ['POST', '/repos/a/b/issues?x=/v1/messages', false],
])('%s %s is a call of a model: %s', (method, path, expected) => {
  expect(isModelCall(method, path)).toBe(expected);
});

it.each([
  ['{"model":"m"}', 'm'],
  [String.raw`{"m\u006fdel":"m","x":1}`, 'm'],
  [String.raw`{"model":"\u006d"}`, 'm'],
  ['{"input":{"model":"m"}}', null],
  ['{"model":"m"}\n{"model":"other"}', 'm'],
])('%s asks for %s', (body, expected) => {
  const reader = new AskedModelReader();
  reader.push(Buffer.from(body));
  expect(reader.model).toBe(expected);
});
