import type { ProviderErrorCode, ProviderType } from '../git-provider.types.js';
import type { ProviderTokenWarning } from './provider-token-input.js';

const REASONS: Record<ProviderErrorCode, string> = {
  unauthorized: 'the provider did not accept the credentials behind it',
  rate_limited: 'the provider limits requests at the moment',
  insufficient_scope: 'it may not read the account',
  sso_required: 'an organisation wants it authorised for single sign-on',
  unsupported: 'the provider cannot check it',
  unavailable: 'the provider could not be reached',
  timeout: 'the provider did not answer in time',
  not_linked: 'the account is not linked to the git host',
  reauth_required: 'the git host wants a new sign-in',
};

/** Tells the client that a token was stored without a verdict of its provider. */
export function unverifiedTokenWarning(
  provider: ProviderType,
  code: ProviderErrorCode,
): ProviderTokenWarning {
  return { provider, code, detail: `The ${provider} token was stored but not verified: ${REASONS[code]}.` };
}
