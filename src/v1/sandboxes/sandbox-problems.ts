import { DomainError } from '../../common/errors/domain-error.js';

/** A place may become free at any time; asking more often than this helps nobody. */
const RETRY_SECONDS = 30;

/** 404: the id is of no sandbox, or of another user's. */
export function unknownSandbox(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no sandbox with this id.');
}

/** 429: all places are taken by sandboxes that are busy. */
export function allSandboxesBusy(most: number): DomainError {
  return new DomainError(
    'rate_limited',
    'sandbox_limit',
    `All ${most} sandboxes that may run at a time are busy. Pause or delete one, or wait until one is idle.`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}
