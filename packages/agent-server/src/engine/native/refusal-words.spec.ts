import { describe, expect, it } from '@jest/globals';
import {
  isContextFull,
  isFinal,
  isFiltered,
  isOutOfMoney,
  isWithoutTools,
  namedPause,
  readRefusal,
} from './refusal-words.js';

/** As most servers write it. */
const error = (message: string): string => JSON.stringify({ error: { message } });

/** The same with a code, or members of its own. */
const coded = (code: string, message = 'no'): string => JSON.stringify({ error: { code, message } });
const typed = (type: string, message = 'no'): string => JSON.stringify({ error: { type, message } });

const FULL: Record<number, string[]> = {
  400: [
    error("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
    coded('context_length_exceeded'),
    coded('tokens_limit_reached'),
    typed('exceed_context_size_error'),
    '{"error":"This model\'s maximum prompt length is 131072 but the request contains 200310 tokens."}',
    typed('invalid_request_error', 'prompt is too long: 206640 tokens > 200000 maximum'),
    error('input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000'),
    error('The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
    '{"message":"Input is too long for requested model."}',
    error('Please reduce the length of the messages or completion.'),
    '{"message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}',
    error('Invalid request: Your request exceeded model token limit: 8192'),
    error('Range of input length should be [1, 98304]'),
    JSON.stringify({ error: { message: 'no', metadata: { raw: coded('context_length_exceeded') } } }),
    error('litellm.BadRequestError: litellm.ContextWindowExceededError: too much'),
    '{"error":"inputs tokens + max_new_tokens must be <= 4096. Given: 5000 inputs tokens and 100"}',
    error('Total number of prompt tokens 9000 is over 8192'),
    error('The prompt has 5000 tokens, more than n_ctx'),
    '{"detail":[{"msg":"The decoder prompt (length 5000) is longer than the maximum model length of 4096."}]}',
    '{"message":"Too many tokens"}',
  ],
  413: [coded('tokens_limit_reached', 'Request body too large.'), '<html>Payload too large</html>'],
  429: [
    error(
      'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run successfully.',
    ),
  ],
  500: [
    error('the request exceeds the available context size'),
    'prompt too long; exceeded max context length by 400 tokens',
    // ollama/ollama#18107
    error('no user query found in messages'),
  ],
  503: [error('input tokens exceed the configured limit')],
};
const OTHERS: Record<number, string[]> = {
  400: [
    error("Unknown parameter: 'reasoning'"),
    error('messages: text content blocks must be non-empty'),
    error("Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64"),
    error('max_tokens is too large: 200000. This model supports at most 16384 completion tokens'),
    error('Range of max_tokens should be [1, 8192]'),
    error('Input should be a valid string'),
    error('max_tokens must be less than 8192'),
    error('prompt must be a string'),
    '',
  ],
  429: [
    error('Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 8s.'),
    coded('tokens_per_minute_limit_exceeded', 'slow down'),
    error('You exceeded your current quota: input tokens per minute, limit: 250000'),
  ],
  500: ['<html>Internal error</html>'],
  503: [error('The server is at maximum capacity, try again later')],
};

it.each([
  [true, FULL],
  [false, OTHERS],
])('isContextFull is %s', (expected, bodies) => {
  const all = Object.entries(bodies).flatMap(([status, texts]) =>
    texts.map((text) => [Number(status), text] as const),
  );
  const wrong = all.filter(([status, text]) => isContextFull(status, readRefusal(text)) !== expected);
  expect(wrong).toEqual([]);
});

it.each([
  [isFinal, coded('invalid_function_parameters'), true],
  [isFinal, typed('invalid_json_schema'), true],
  [isFinal, coded('invalid_api_key'), true],
  [isFinal, coded('content_policy_violation'), true],
  [isFinal, typed('authentication_error'), true],
  [isFinal, typed('invalid_request_error', 'the schema is odd'), false],
  [isFiltered, '{"error":{"innererror":{"code":"ResponsibleAIPolicyViolation"}}}', true],
  [isFiltered, coded('content_filter'), true],
  [isFiltered, coded('invalid_value'), false],
  [isOutOfMoney, coded('insufficient_quota'), true],
  [isOutOfMoney, coded('rate_limit_exceeded'), false],
  // LiteLLM
  [isOutOfMoney, error('Budget has been exceeded! Current cost: 10.1, Max budget: 10.0'), true],
  [isOutOfMoney, typed('budget_exceeded', 'LiteLLM User: x, exceeded budget for model=y'), true],
  [isOutOfMoney, error('Authentication Error, ExceededBudget: End User=x over budget. Spend=0.1'), true],
  // Anthropic, Moonshot, Zhipu, xAI, Alibaba
  [isOutOfMoney, error('Your credit balance is too low to access the Anthropic API.'), true],
  [isOutOfMoney, typed('exceeded_current_quota_error'), true],
  [isOutOfMoney, coded('1113', 'Insufficient balance or no resource package. Please recharge.'), true],
  [isOutOfMoney, '{"error":"Your team has used all available credits or reached its spending limit."}', true],
  [isOutOfMoney, '{"code":"Arrearage","message":"Access denied"}', true],
  [isOutOfMoney, error('You have reached your specified API usage limits.'), true],
  // Google, of a limit for a minute
  [
    isOutOfMoney,
    error('You exceeded your current quota, please check your plan. Please retry in 12s.'),
    false,
  ],
  [isWithoutTools, error('registry.ollama.ai/library/gemma3:4b does not support tools'), true],
  [isWithoutTools, error('No endpoints found that support tool use.'), true],
  [isWithoutTools, error('"auto" tool choice requires --enable-auto-tool-choice to be set'), true],
  [isWithoutTools, error('`tool calling` is not supported with this model'), true],
  [isWithoutTools, error('tools[3]: schema is not supported'), false],
])('%p of %s: %s', (check, body, expected) => {
  expect(check(readRefusal(body))).toBe(expected);
});

it.each([
  [error('bad key'), 'bad key'],
  ['{"message":"too long"}', 'too long'],
  ['{"error":"no such model"}', 'no such model'],
  ['{"detail":"Not Found"}', 'Not Found'],
  ['[{"error":{"message":"in a list"}}]', 'in a list'],
  // open-webui/computer#293
  ...['temporarily rate-limited upstream', error('temporarily rate-limited upstream')].map((raw) => [
    JSON.stringify({ error: { message: 'Provider returned error', metadata: { raw } } }),
    'temporarily rate-limited upstream',
  ]),
  [error('Provider returned error'), 'Provider returned error'],
  ['<html>Bad gateway</html>', '<html>Bad gateway</html>'],
  [
    '<!DOCTYPE html>\n<!--[if lt IE 7]> <html class="ie6"> <![endif]-->\n<title>llm.example | 524: A\n timeout</title>',
    'llm.example | 524: A timeout',
  ],
  ['{}', '{}'],
  ['', ''],
])('readRefusal: %s', (body, reason) => {
  expect(readRefusal(body).reason).toBe(reason);
});

describe('namedPause', () => {
  const NOW = Date.parse('2026-01-31T12:00:00Z');
  it.each([
    [{ 'retry-after': '7' }, '', 7_000],
    [{ 'retry-after': '2.5' }, '', 2_500],
    [{ 'retry-after': '30s' }, '', 30_000],
    [{ 'retry-after': 'Sat, 31 Jan 2026 12:00:09 GMT' }, '', 9_000],
    [{ 'retry-after': 'Sat, 31 Jan 2026 11:00:00 GMT' }, '', 0],
    [{ 'retry-after': 'soon' }, '', 0],
    [{ 'retry-after-ms': '1500', 'retry-after': '2' }, '', 1_500],
    [{}, '{"error":{"details":[{"@type":"x"},{"@type":"RetryInfo","retryDelay":"45.837906927s"}]}}', 45_838],
    [{}, '[{"error":{"details":[{"retryDelay":"3s"}]}}]', 3_000],
    [{}, '{"error":{"details":[{"retryDelay":{"seconds":4}}]}}', 4_000],
    [
      {},
      '{"error":{"metadata":{"raw":"{\\"error\\":{\\"details\\":[{\\"retryDelay\\":\\"6s\\"}]}}"}}}',
      6_000,
    ],
    [{}, '{"error":{"details":[{"metadata":{"quotaResetDelay":"373.801628ms"}}]}}', 374],
    [{}, error('Please retry in 12.5s.'), 12_500],
    [{}, error('Please try again in 1m30s.'), 90_000],
    [{}, error('Rate limit reached: Limit 30000, Used 29000. Please try again in 820ms. Visit 5'), 820],
    [{}, error('Try again in 20 seconds.'), 20_000],
    [{}, error('Please retry after 1 minute and 5 seconds'), 65_000],
    [{}, 'Your quota will reset after 2h0m5s.', 7_205_000],
    [{}, '{"retry_after": 1.5}', 1_500],
    [{}, error('Limit 30000 tokens per 5 minutes'), 0],
    [{}, error('try again later'), 0],
    [{}, '', 0],
  ])('%j %s: %d ms', (headers, body, milliseconds) => {
    expect(namedPause(headers, body, NOW)).toBe(milliseconds);
  });
});
