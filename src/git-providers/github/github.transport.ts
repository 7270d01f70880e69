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

/**
 * The `fetch` that octokit is given for one call: guarded, and within the call's bounds. An answer that is no
 * success becomes an error here, before octokit makes one out of it that quotes the answer.
 *
 * @param now epoch milliseconds
 */
export function githubTransport(
  http: GuardedHttpClient,
  call: ProviderCall,
  now: () => number,
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
    throw (
      providerErrorFromResponse(response, now(), await response.text()) ??
      new GitProviderError('unsupported', { cause: new Error(`GitHub answered with ${response.status}`) })
    );
  };
}
