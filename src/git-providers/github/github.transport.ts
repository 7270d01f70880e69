import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { GitProviderError } from '../git-provider.error.js';
import type { ProviderCall } from '../git-provider.types.js';
import { providerErrorFromResponse } from '../provider-response.js';
import { timeLeft } from '../time-left.js';

interface OctokitRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** What an answer that is no success means. */
export type FailureOf = (response: Response, bodyText: string) => GitProviderError;

/**
 * The `fetch` that octokit is given for one call: guarded, and within the call's bounds. An answer that is no
 * success becomes an error here, before octokit makes one out of it that quotes the answer.
 *
 * @param now epoch milliseconds
 * @param failureOf for requests whose refusal means more than that there was no usable answer
 */
export function githubTransport(
  http: GuardedHttpClient,
  call: ProviderCall,
  now: () => number,
  failureOf: FailureOf = (response, text) =>
    providerErrorFromResponse(response, now(), text) ??
    new GitProviderError('unsupported', { cause: new Error(`GitHub answered with ${response.status}`) }),
): (url: string, request?: OctokitRequest) => Promise<Response> {
  return async (url, { method, headers, body } = {}) => {
    const timeoutMs = timeLeft(call, now());
    const response = await http.fetch(url, { method, headers, body, signal: call.signal, timeoutMs });
    if (response.ok) {
      return response;
    }
    if (response.status === 403 && /^required/i.test(response.headers.get('x-github-sso') ?? '')) {
      // The organisation wants the token authorised for its single sign-on first.
      throw new GitProviderError('sso_required');
    }
    throw failureOf(response, await response.text());
  };
}
