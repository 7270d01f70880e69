import { type BareItem, serializeList, Token } from 'structured-headers';
import { DomainError } from '../common/errors/domain-error.js';
import type { ErrorKind } from '@slipway/api/errors/problem-error.js';
import type {
  GitProviderError,
  ProviderErrorCode,
  ProviderType,
} from '@slipway/git-providers/git-provider.js';
import type { ProviderOutcome } from './work.reader.js';

export interface ProviderFailure {
  provider: ProviderType;
  error: GitProviderError;
}

export interface ProviderStatus {
  provider: ProviderType;
  status: 'ok' | 'partial' | 'stale' | 'error';
  code?: ProviderErrorCode;
  /** The host's own words. */
  detail?: string;
  count?: number;
  /** Seconds since the data was read (stale). */
  age?: number;
  /** Seconds. */
  retryAfter?: number;
  truncated?: boolean;
}

const NEEDS_NEW_TOKEN: readonly ProviderErrorCode[] = ['unauthorized', 'not_linked', 'reauth_required'];
/** GitHub asks for at least a minute where it gives no time. */
const DEFAULT_RETRY_AFTER = 60;

/** No provider responded: 401 if all refuse the token, 429 if all limit the rate, 504 if all timed out, else 502. */
export function allProvidersFailed(failures: readonly ProviderFailure[]): DomainError {
  const { kind, detail } = meaningOf(failures.map(({ error }) => error.code));
  const soonest = Math.min(...failures.map(({ error }) => error.retryAfterSeconds ?? DEFAULT_RETRY_AFTER));
  return new DomainError('git_providers_failed', detail, {
    kind,
    ...(kind === 'rate_limited' && { retryAfterSeconds: soonest }),
    extensions: {
      errors: failures.map(({ provider, error }) => ({
        provider,
        code: error.code,
        retry_after: error.retryAfterSeconds,
        ...(error.said !== null && { detail: error.said }),
      })),
    },
  });
}

/** How a provider took part. `isCut`: the response has no room for all of its tasks. */
export function providerStatus(outcome: ProviderOutcome, count: number, isCut: boolean): ProviderStatus {
  const { provider } = outcome;
  if ('error' in outcome) {
    const { code, said, retryAfterSeconds } = outcome.error;
    return {
      provider,
      status: 'error',
      code,
      ...(said !== null && { detail: said }),
      ...(retryAfterSeconds !== null && { retryAfter: Math.ceil(retryAfterSeconds) }),
    };
  }
  const { stale, age, value: work } = outcome.read;
  const shown = { count, truncated: work.truncated || isCut };
  const [gap] = work.gaps;
  if (stale) {
    return { provider, status: 'stale', age, ...shown };
  }
  if (gap === undefined) {
    return { provider, status: 'ok', ...shown };
  }
  const detail = work.gapReasons[gap];
  return { provider, status: 'partial', code: gap, ...(detail && { detail }), ...shown };
}

/** `X-Provider-Status`: a structured list (RFC 9651 section 3.1) with one member per provider. */
export function providerStatusHeader(statuses: readonly ProviderStatus[]): string {
  return serializeList(
    statuses.map(({ provider, status, code, detail, count, age, retryAfter, truncated }) => {
      const parameters = new Map<string, BareItem>([['status', new Token(status)]]);
      if (code !== undefined) {
        parameters.set('code', new Token(code));
      }
      if (detail !== undefined) {
        // Strings of structured headers are ASCII (RFC 9651 section 3.3.3).
        parameters.set('detail', detail.replace(/[^\x20-\x7e]/gu, '?'));
      }
      if (count !== undefined) {
        parameters.set('count', count);
      }
      if (age !== undefined) {
        parameters.set('age', age);
      }
      if (retryAfter !== undefined) {
        parameters.set('retry_after', retryAfter);
      }
      if (truncated === true) {
        parameters.set('truncated', 1);
      }
      return [new Token(provider), parameters];
    }),
  );
}

function meaningOf(codes: readonly ProviderErrorCode[]): { kind: ErrorKind; detail: string } {
  if (codes.every((code) => NEEDS_NEW_TOKEN.includes(code))) {
    return {
      kind: 'unauthorized',
      detail: 'Every git provider refused its token; store new ones with POST /api/v1/secrets/git-providers.',
    };
  }
  if (codes.every((code) => code === 'rate_limited')) {
    return {
      kind: 'rate_limited',
      detail: 'Every git provider limits requests at the moment; wait as long as Retry-After says.',
    };
  }
  if (codes.every((code) => code === 'timeout')) {
    return { kind: 'gateway_timeout', detail: 'No git provider answered in time; try again.' };
  }
  return {
    kind: 'bad_gateway',
    detail: 'No git provider gave a usable answer; `errors` says why for each.',
  };
}
