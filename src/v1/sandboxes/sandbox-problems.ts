import { DomainError } from '../../common/errors/domain-error.js';
import type { SandboxConfig } from '../../config/app-config.js';

/** A place may become free at any time; asking more often than this helps nobody. */
const RETRY_SECONDS = 30;

/** 404: the id is of no sandbox, or of another user's. */
export function unknownSandbox(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no sandbox with this id.');
}

/** 429: all places are taken, and none of those who have them makes room. */
export function noPlace({
  maxRunning,
  limitPolicy,
}: Pick<SandboxConfig, 'maxRunning' | 'limitPolicy'>): DomainError {
  return new DomainError(
    'rate_limited',
    'sandbox_limit',
    limitPolicy === 'reject'
      ? `As many of your sandboxes run as may at a time (${maxRunning}). Pause or delete one, then try again.`
      : `All ${maxRunning} sandboxes that may run at a time are busy. Pause or delete one, or wait until one is idle.`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}
