import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import { readJson } from '../common/http/read-json.js';
import { GitProviderError } from './git-provider.error.js';
import type { ProviderCall } from './git-provider.types.js';
import { providerErrorFromResponse } from './provider-response.js';
import { retryOnce, type RetryTiming } from './retry-once.js';
import { timeLeft } from './time-left.js';

export interface JsonRequest {
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST; without it the request is a GET. */
  body?: unknown;
}

export interface JsonAnswer {
  headers: Headers;
  /** Unparsed wire data; null for 404, which often just means "there is none". */
  body: unknown;
}

/**
 * Sends one reading request and answers with its JSON. A server in trouble is asked once more.
 *
 * @throws GitProviderError for every other answer than success and 404, and when none came in time
 */
export async function exchangeJson(
  http: GuardedHttpClient,
  request: JsonRequest,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<JsonAnswer> {
  return await retryOnce(() => exchangeOnce(http, request, call, timing), call, timing);
}

async function exchangeOnce(
  http: GuardedHttpClient,
  request: JsonRequest,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<JsonAnswer> {
  const timeoutMs = timeLeft(call, timing.now());
  const response = await http.fetch(request.url, {
    headers: {
      accept: 'application/json',
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body === undefined ? {} : { method: 'POST', body: JSON.stringify(request.body) }),
    signal: call.signal,
    timeoutMs,
  });
  const failure = providerErrorFromResponse(response, timing.now());
  if (failure) {
    throw failure;
  }
  if (response.status === 404) {
    return { headers: response.headers, body: null };
  }
  if (!response.ok) {
    // The server understood and will not: asking again changes nothing.
    throw new GitProviderError('unsupported');
  }
  return { headers: response.headers, body: await readJson(response, new URL(request.url).origin) };
}
