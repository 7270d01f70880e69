import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf, by, type Schemas } from '../api/client.js';

/** Whose settings a part of a page is about: the user's own, or what the organization shares. */
export type Owner = 'user' | 'organization';

export type OfOwner = { owner?: Owner };

export type StoredSettings = Schemas['StoredSettings'];

/** Members read what the organization shares, without keys. */
export const sharedSettingsQuery = queryOptions({
  queryKey: ['shared-settings'],
  queryFn: () => bodyOf(api.GET('/api/settings', by({ scope: 'organization' }))),
});

/** Stores members of the settings. @returns what to say then */
export async function storeSettings(body: Schemas['Settings'], owner: Owner = 'user') {
  const query = owner === 'organization' ? { scope: owner } : {};
  const { warnings = [] } = await bodyOf(api.POST('/api/v1/settings', { ...by(query), body }));
  return warnings.length === 0 ? 'Saved.' : { warning: warnings.map(({ detail }) => detail).join(' ') };
}
