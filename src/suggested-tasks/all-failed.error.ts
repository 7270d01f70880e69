import { DomainError, type ErrorKind } from '../common/errors/domain-error.js';
import type { ProviderErrorCode, ProviderType } from '../git-providers/git-provider.types.js';

export interface ProviderFailure {
  provider: ProviderType;
  code: ProviderErrorCode;
  /** Seconds. */
  retryAfter: number | null;
}

const NEEDS_NEW_TOKEN: readonly ProviderErrorCode[] = ['unauthorized', 'not_linked', 'reauth_required'];
/** GitHub asks for at least a minute where it gives no time. */
const DEFAULT_RETRY_AFTER = 60;

/** No provider answered: 401 when every token is refused, 429 when all are rate limited, 504 when all timed out, else 502. */
export function allProvidersFailed(failures: readonly ProviderFailure[]): DomainError {
  const every = (codes: readonly ProviderErrorCode[]): boolean =>
    failures.every((failure) => codes.includes(failure.code));
  const [kind, detail]: [ErrorKind, string] = every(NEEDS_NEW_TOKEN)
    ? [
        'unauthorized',
        'Every git provider refused its token; store new ones with POST /api/add-git-providers.',
      ]
    : every(['rate_limited'])
      ? [
          'rate_limited',
          'Every git provider limits requests at the moment; wait as long as Retry-After says.',
        ]
      : every(['timeout'])
        ? ['gateway_timeout', 'No git provider answered in time; try again.']
        : ['bad_gateway', 'No git provider gave a usable answer; `errors` says why for each.'];
  const soonest = Math.min(...failures.map((failure) => failure.retryAfter ?? DEFAULT_RETRY_AFTER));
  return new DomainError(kind, 'git_providers_failed', detail, {
    ...(kind === 'rate_limited' && { retryAfterSeconds: soonest }),
    extensions: {
      errors: failures.map(({ provider, code, retryAfter }) => ({ provider, code, retry_after: retryAfter })),
    },
  });
}
