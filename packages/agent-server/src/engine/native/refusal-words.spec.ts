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

describe('isContextFull', () => {
  it.each([
    [400, error("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens")],
    [400, '{"error":{"code":"context_length_exceeded","message":"no"}}'],
    [400, '{"error":{"type":"exceed_context_size_error","message":"no"}}'],
    [
      400,
      '{"error":"This model\'s maximum prompt length is 131072 but the request contains 200310 tokens."}',
    ],
    [
      413,
      '{"error":{"code":"tokens_limit_reached","message":"Request body too large. Max size: 8000 tokens."}}',
    ],
    [400, '{"error":{"code":"tokens_limit_reached","message":"no"}}'],
    [
      400,
      '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 206640 tokens > 200000 maximum"}}',
    ],
    [400, error('input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000')],
    [
      400,
      '{"error":{"status":"INVALID_ARGUMENT","message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}',
    ],
    [400, '{"message":"Input is too long for requested model."}'],
    [400, error('Please reduce the length of the messages or completion.')],
    [
      400,
      '{"message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}',
    ],
    [400, error('Invalid request: Your request exceeded model token limit: 8192')],
    [400, error('Range of input length should be [1, 98304]')],
    [
      400,
      '{"error":{"message":"Provider returned error","metadata":{"raw":"{\\"error\\":{\\"code\\":\\"context_length_exceeded\\"}}"}}}',
    ],
    [400, error('litellm.BadRequestError: litellm.ContextWindowExceededError: too much')],
    [500, error('the request exceeds the available context size')],
    [500, 'prompt too long; exceeded max context length by 400 tokens'],
    [503, error('input tokens exceed the configured limit')],
    [413, '<html>Payload too large</html>'],
    [400, '{"error":"inputs tokens + max_new_tokens must be <= 4096. Given: 5000 inputs tokens and 100"}'],
    [400, error('Total number of prompt tokens 9000 is over 8192')],
    [400, error('The prompt has 5000 tokens, more than n_ctx')],
    [
      400,
      '{"detail":[{"msg":"The decoder prompt (length 5000) is longer than the maximum model length of 4096."}]}',
    ],
    [400, '{"message":"Too many tokens"}'],
    [
      429,
      error(
        'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run successfully.',
      ),
    ],
  ])('%d %s: yes', (status, body) => {
    expect(isContextFull(status, readRefusal(body))).toBe(true);
  });

  it.each([
    [400, error("Unknown parameter: 'reasoning'")],
    [400, error('messages: text content blocks must be non-empty')],
    [
      400,
      error("Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64"),
    ],
    [400, error('max_tokens is too large: 200000. This model supports at most 16384 completion tokens')],
    [400, error('Range of max_tokens should be [1, 8192]')],
    [400, error('Input should be a valid string')],
    [400, error('max_tokens must be less than 8192')],
    [400, error('prompt must be a string')],
    [400, ''],
    [500, '<html>Internal error</html>'],
    [503, error('The server is at maximum capacity, try again later')],
    [
      429,
      error(
        'Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 8s.',
      ),
    ],
    [429, '{"error":{"code":"tokens_per_minute_limit_exceeded","message":"slow down"}}'],
    [429, error('You exceeded your current quota: input tokens per minute, limit: 250000')],
  ])('%d %s: no', (status, body) => {
    expect(isContextFull(status, readRefusal(body))).toBe(false);
  });
});

describe('codes', () => {
  it.each([
    ['{"error":{"code":"invalid_function_parameters"}}', isFinal, true],
    ['{"error":{"type":"invalid_json_schema"}}', isFinal, true],
    ['{"error":{"code":"invalid_api_key"}}', isFinal, true],
    ['{"error":{"code":"content_policy_violation"}}', isFinal, true],
    ['{"error":{"type":"authentication_error"}}', isFinal, true],
    ['{"error":{"type":"invalid_request_error","message":"the schema is odd"}}', isFinal, false],
    ['{"error":{"innererror":{"code":"ResponsibleAIPolicyViolation"}}}', isFiltered, true],
    ['{"error":{"code":"content_filter"}}', isFiltered, true],
    ['{"error":{"code":"invalid_value"}}', isFiltered, false],
    ['{"error":{"code":"insufficient_quota"}}', isOutOfMoney, true],
    ['{"error":{"code":"rate_limit_exceeded"}}', isOutOfMoney, false],
    // LiteLLM
    [error('Budget has been exceeded! Current cost: 10.1, Max budget: 10.0'), isOutOfMoney, true],
    [
      '{"error":{"message":"LiteLLM User: x, exceeded budget for model=y","type":"budget_exceeded"}}',
      isOutOfMoney,
      true,
    ],
    [error('Authentication Error, ExceededBudget: End User=x over budget. Spend=0.1'), isOutOfMoney, true],
    // Anthropic, Moonshot, Zhipu, xAI, Alibaba
    [
      '{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}',
      isOutOfMoney,
      true,
    ],
    ['{"error":{"type":"exceeded_current_quota_error","message":"no"}}', isOutOfMoney, true],
    [
      '{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}',
      isOutOfMoney,
      true,
    ],
    [
      '{"error":"Your team has either used all available credits or reached its monthly spending limit."}',
      isOutOfMoney,
      true,
    ],
    ['{"code":"Arrearage","message":"Access denied"}', isOutOfMoney, true],
    [
      error('You have reached your specified API usage limits. You will regain access on 2026-12-01.'),
      isOutOfMoney,
      true,
    ],
    // Google, of a limit for a minute
    [
      error(
        'You exceeded your current quota, please check your plan and billing details. Please retry in 12s.',
      ),
      isOutOfMoney,
      false,
    ],
    [error('registry.ollama.ai/library/gemma3:4b does not support tools'), isWithoutTools, true],
    [error('No endpoints found that support tool use.'), isWithoutTools, true],
    [
      '{"message":"\\"auto\\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}',
      isWithoutTools,
      true,
    ],
    [error('`tool calling` is not supported with this model'), isWithoutTools, true],
    [error('tools[3]: schema is not supported'), isWithoutTools, false],
  ])('%s', (body, check, expected) => {
    expect(check(readRefusal(body))).toBe(expected);
  });
});

describe('readRefusal', () => {
  it.each([
    [error('bad key'), 'bad key'],
    ['{"message":"too long"}', 'too long'],
    ['{"error":"no such model"}', 'no such model'],
    ['{"detail":"Not Found"}', 'Not Found'],
    ['[{"error":{"message":"in a list"}}]', 'in a list'],
    ['<html>Bad gateway</html>', '<html>Bad gateway</html>'],
    [
      '<!DOCTYPE html>\n<!--[if lt IE 7]> <html class="ie6"> <![endif]-->\n<title>llm.example | 524: A\n timeout</title>',
      'llm.example | 524: A timeout',
    ],
    ['{}', '{}'],
    ['', ''],
  ])('%s', (body, reason) => {
    expect(readRefusal(body).reason).toBe(reason);
  });
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
    [
      {},
      '{"error":{"details":[{"@type":"x"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.837906927s"}]}}',
      45_838,
    ],
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
