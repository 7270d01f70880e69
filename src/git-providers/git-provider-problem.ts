import { DomainError } from '../common/errors/domain-error.js';
import { thrown } from '@slipway/api/openapi/api-route.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import {
  GitProviderError,
  type ProviderErrorCode,
  type ProviderType,
} from '@slipway/git-providers/git-provider.js';

/** The error for a token that its provider rejects. */
export function invalidGitToken(
  provider: ProviderType,
  { said = null, cause }: { said?: string | null; cause?: unknown } = {},
): DomainError {
  return new DomainError(
    'invalid_git_token',
    `Invalid token. Please make sure it is a valid ${provider} token.`,
    // Clients know the sentence above; the host's own is an extension.
    { cause, ...(said !== null && { extensions: { reason: said } }) },
  );
}

export const INVALID_TOKEN = thrown(
  invalidGitToken('github'),
  'No valid API key, or a token that its provider rejects',
);

export function noGitProvider(): DomainError {
  return new DomainError('no_git_provider', 'No providers set.');
}

export function noTokenOf(provider: ProviderType, kind: 'unauthorized' | 'conflict'): DomainError {
  const detail = `There is no ${provider} token: store one with POST /api/v1/secrets/git-providers.`;
  return new DomainError('no_git_provider', detail, { kind });
}

/** Wait for a provider that limits requests without saying for how long. */
const DEFAULT_WAIT_SECONDS = 60;

/** The error for a client whose provider fails, or refuses and says why. */
export function gitProviderProblem(provider: ProviderType, error: GitProviderError): DomainError {
  if (error.reason !== null) {
    return refusal(provider, error, error.reason);
  }
  switch (error.code) {
    case 'unauthorized':
      return invalidGitToken(provider, { said: error.said, cause: error });
    case 'not_linked':
    case 'reauth_required':
      return new DomainError(
        'invalid_git_token',
        `The sign-in behind the ${provider} token has ended or is not linked: sign in again and store the new token.`,
        { cause: error },
      );
    case 'rate_limited':
      return new DomainError(
        'rate_limited',
        isShareUsedUp(error)
          ? `You have as many requests to the git provider ${provider} under way as one user may have; wait as long as Retry-After says.`
          : `The git provider ${provider} limits requests at the moment; wait as long as Retry-After says.`,
        { cause: error, retryAfterSeconds: error.retryAfterSeconds ?? DEFAULT_WAIT_SECONDS },
      );
    case 'timeout':
      return new DomainError('upstream_error', `The git provider ${provider} did not answer in time.`, {
        kind: 'gateway_timeout',
        cause: error,
      });
    default:
      return new DomainError(
        'upstream_error',
        `The git provider ${provider} gave no usable answer (${error.code})${error.said === null ? '.' : `: ${asSentence(error.said)}`}`,
        { cause: error },
      );
  }
}

const PASSING: readonly ProviderErrorCode[] = ['rate_limited', 'timeout', 'unavailable'];

/** Whether the provider may give an answer to the same question later. */
export function mayPass({ cause }: DomainError): boolean {
  return cause instanceof GitProviderError && PASSING.includes(cause.code);
}

/** Our own limit on a user's requests, not the provider's. A remembered failure has the first one as its cause. */
function isShareUsedUp({ cause }: GitProviderError): boolean {
  return cause instanceof GitProviderError
    ? isShareUsedUp(cause)
    : cause instanceof UpstreamError && cause.reason === 'share';
}

function refusal(provider: ProviderType, cause: GitProviderError, reason: string): DomainError {
  return cause.code === 'insufficient_scope' || cause.code === 'blocked_by_policy'
    ? new DomainError('forbidden', `The ${provider} token may not do this: ${asSentence(reason)}`, { cause })
    : new DomainError('conflict', `The git provider ${provider} refuses: ${asSentence(reason)}`, {
        cause,
      });
}

function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
