import { GitProviderError } from './git-provider.error.js';
import { providerErrorFromResponse, type ProviderResponseHead } from './provider-response.js';

const NOT_FOUND = 'the repository or branch does not exist, or the token may not see it';

/**
 * What it means that a change was answered with something else than success. A refusal (any 4xx without a meaning of
 * its own) is `unsupported` with a `reason`, a missing permission `insufficient_scope` with one.
 *
 * @param reason what the provider said, fit to show
 * @param nowMs epoch milliseconds
 */
export function changeRefusal(
  response: ProviderResponseHead,
  reason: string | null,
  nowMs: number,
  bodyText = '',
): GitProviderError {
  const failure = providerErrorFromResponse(response, nowMs, bodyText);
  if (failure?.code === 'insufficient_scope') {
    return new GitProviderError('insufficient_scope', { reason: reason ?? 'the permission is missing' });
  }
  if (failure) {
    return failure;
  }
  const because = response.status === 404 ? NOT_FOUND : `answered with ${response.status}`;
  return new GitProviderError('unsupported', {
    reason: reason === null ? because : response.status === 404 ? `${NOT_FOUND} (${reason})` : reason,
  });
}

/** Whether a provider refused a change for certain, and said why. */
export function isRefusal(error: unknown): boolean {
  return error instanceof GitProviderError && error.code === 'unsupported' && error.reason !== null;
}
