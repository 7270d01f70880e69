import { serializeList, Token, type BareItem } from 'structured-headers';
import type { ProviderErrorCode, ProviderType } from '../git-providers/git-provider.types.js';

/** How one provider took part in an answer. */
export interface ProviderStatus {
  provider: ProviderType;
  status: 'ok' | 'partial' | 'stale' | 'error';
  code?: ProviderErrorCode;
  /** Tasks of this provider in the body. */
  count?: number;
  /** Seconds since the data was read (stale). */
  age?: number;
  /** Seconds to wait before asking again. */
  retryAfter?: number;
  /** Something was cut. */
  truncated?: boolean;
}

/** The value of `X-Provider-Status`: a structured list (RFC 9651 section 3.1), one member per provider. */
export function providerStatusHeader(statuses: readonly ProviderStatus[]): string {
  return serializeList(
    statuses.map(({ provider, status, code, count, age, retryAfter, truncated }) => {
      const parameters = new Map<string, BareItem>([['status', new Token(status)]]);
      if (code !== undefined) {
        parameters.set('code', new Token(code));
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
