import type { ProviderErrorCode, ProviderType } from '../git-provider.types.js';

/** One entry of a `provider_tokens` map, as a client sent it. */
export interface ProviderTokenInput {
  token?: string | null;
  host?: string | null;
  user_id?: string | null;
}

/** What a client wants done with its tokens; null removes a provider's token. */
export type ProviderTokenInputs = ReadonlyMap<ProviderType, ProviderTokenInput | null>;

/** A token that was stored although its provider gave no verdict on it. */
export interface ProviderTokenWarning {
  provider: ProviderType;
  code: ProviderErrorCode;
  detail: string;
}
