import { describe, expect, it } from '@jest/globals';
import { APICallError } from 'ai';
import { LlmFailure, toLlmFailure, UnresponsiveModelError } from './llm-failure.js';

const NOW = Date.parse('2026-01-31T12:00:00Z');

function refusal(status: number, body: string, headers: Record<string, string> = {}): APICallError {
  return new APICallError({
    message: 'failed',
    url: 'http://llm.local',
    requestBodyValues: {},
    statusCode: status,
    responseBody: body,
    responseHeaders: headers,
  });
}

describe('toLlmFailure', () => {
  it.each([
    [refusal(401, '{"error":{"message":"bad key"}}'), 'LlmAuthenticationFailed', '401: bad key', null],
    [refusal(400, '{"message":"too long"}'), 'LlmRejected', '400: too long', null],
    [refusal(400, '{"error":{"message":"maximum context length is 8192"}}'), 'LlmContextFull', '8192', null],
    [refusal(503, '{"error":{"type":"exceed_context_size_error"}}'), 'LlmContextFull', '503', null],
    [refusal(404, '{"error":"no such model"}'), 'LlmRejected', '404: no such model', null],
    [refusal(502, '<html>Bad gateway</html>'), 'LlmUnavailable', '502: <html>Bad gateway</html>', 0],
    [refusal(503, '', { 'retry-after': '2.5' }), 'LlmUnavailable', '503: failed', 2_500],
    [refusal(429, '{}', { 'retry-after': 'soon' }), 'LlmRateLimited', '429: {}', 0],
    [refusal(200, ''), 'LlmUnavailable', 'broke off: failed', 0],
    [
      refusal(400, '{"error":{"message":"gemma3:4b does not support tools"}}'),
      'LlmRejected',
      'set native_tool_calling to false',
      null,
    ],
    [refusal(429, '{"error":{"type":"budget_exceeded"}}'), 'LlmQuotaExceeded', 'budget_exceeded', null],
    [refusal(403, '{"error":"You do not have any credits yet."}'), 'LlmQuotaExceeded', 'credits', null],
    [
      new Error('wrapped', { cause: new UnresponsiveModelError(5_000) }),
      'LlmTimeout',
      'nothing for 5 s',
      null,
    ],
    [
      new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }),
      'LlmUnavailable',
      'fetch failed: ECONNREFUSED',
      0,
    ],
    [{ message: 'overloaded' }, 'LlmUnavailable', 'overloaded', 0],
    [refusal(500, '{"error":"no user query found in messages"}'), 'LlmContextFull', 'num_ctx', null],
    // Oaklight/argo-proxy#91
    [{ message: "Error code: 400 - {'error': {'message': 'no'}}" }, 'LlmRejected', '400: {', null],
  ])('reads %s', (error, code, message, retryAfterMs) => {
    const failure = toLlmFailure(error, NOW);
    expect(failure).toMatchObject({ code, retryAfterMs });
    expect(failure.mayBeHistory || code !== 'LlmContextFull').toBe(true);
    expect(failure.message).toContain(message);
  });

  it.each([
    [
      refusal(401, '{"error":{"message":"Error: Error: 401 Unauthorized"}}'),
      "The model's provider answered 401: Unauthorized",
    ],
    [refusal(503, '503: try later'), "The model's provider answered 503: try later"],
    [refusal(404, 'Error code: 404 - no such model'), "The model's provider answered 404: no such model"],
    [refusal(429, '401k plans are full'), "The model's provider answered 429: 401k plans are full"],
    [refusal(500, 'error'), "The model's provider answered 500: error"],
    [
      new APICallError({
        message: 'Cannot connect to API: connect ECONNREFUSED 127.0.0.1:9',
        url: 'http://llm.local',
        requestBodyValues: {},
        cause: new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9') }),
      }),
      'The model could not be reached, or its answer broke off: Cannot connect to API: connect ECONNREFUSED 127.0.0.1:9: fetch failed',
    ],
    [
      new Error('socket', { cause: new Error('Error: socket hang up') }),
      'The model could not be reached, or its answer broke off: Error: socket hang up',
    ],
    [
      new TypeError('fetch failed', { cause: new Error('Proxy response (403) !== 200 when HTTP Tunneling') }),
      'The model could not be reached, or its answer broke off: fetch failed: Proxy response (403) !== 200 when HTTP Tunneling (the proxy answered 403: it has to let this server through, or NO_PROXY has to name it)',
    ],
  ])('tells what happened once: %s', (error, message) => {
    expect(toLlmFailure(error, NOW).message).toBe(message);
  });

  const refused = (code: string, address: string) =>
    Object.assign(new Error(`connect ${code} ${address}`), { code, address, port: 11_434 });

  it.each([
    ['loopback', refused('ECONNREFUSED', '127.0.0.1'), true],
    ['a private address', refused('EPERM', '10.1.2.3'), true],
    [
      'both loopbacks',
      new AggregateError([refused('ECONNREFUSED', '::1'), refused('ECONNREFUSED', '127.0.0.1')]),
      true,
    ],
    ['a public address', refused('ECONNREFUSED', '203.0.113.9'), false],
    ['a connection that broke', refused('ECONNRESET', '10.1.2.3'), false],
  ])('says how to open a destination that the network blocks: %s', (_, cause, expected) => {
    const { message } = toLlmFailure(new TypeError('fetch failed', { cause }), NOW);
    expect(/SANDBOX_NETWORK_ALLOW=[\d.]+:11434\.$/.test(message)).toBe(expected);
  });

  it('returns an LlmFailure unchanged', () => {
    const own = new LlmFailure('LlmEmptyAnswer', 'nothing', 0);
    expect(toLlmFailure(own, NOW)).toBe(own);
  });
});
