import { GitProviderError } from './git-provider.error.js';
import { providerErrorFromUpstream } from './provider-response.js';

/**
 * One error for an answer none of whose parts could be read. A rejection of the token says most, else the first
 * part speaks; all stay in the cause.
 *
 * @param reasons Why each part failed, the most important part first; at least one
 */
export function combinedError(reasons: readonly unknown[]): GitProviderError {
  const errors = reasons.map(providerErrorFromUpstream);
  const main = errors.find(({ code }) => code === 'unauthorized') ?? errors[0];
  return new GitProviderError(main?.code ?? 'unavailable', {
    cause: new AggregateError(errors, 'every request failed'),
    retryAfterSeconds: main?.retryAfterSeconds ?? null,
  });
}
