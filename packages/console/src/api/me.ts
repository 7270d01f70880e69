import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf, type Schemas } from './client.js';

/** The settings of the user; never refused, also before there are any. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async () => await bodyOf(api.GET('/api/v1/users/me')),
  staleTime: 60_000,
});

export type Provider = Schemas['ProviderType'];

export const PROVIDER_NAMES: Record<Provider, string> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  bitbucket: 'Bitbucket',
  enterprise_sso: 'Enterprise SSO',
};

export function providerName(provider: string): string {
  return PROVIDER_NAMES[provider as Provider] ?? provider;
}
