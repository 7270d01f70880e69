import { DomainError } from '../../common/errors/domain-error.js';
import type { ProviderType } from '../git-provider.types.js';

/** The answer when a provider rejects a token for certain. */
export function invalidGitToken(provider: ProviderType, cause?: unknown): DomainError {
  return new DomainError(
    'unauthorized',
    'invalid_git_token',
    `Invalid token. Please make sure it is a valid ${provider} token.`,
    { cause },
  );
}
