import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf, bodyQuery, by, type Schemas } from '../api/client.js';
import { given } from '../ui/form.js';

export type User = Schemas['ListedUser'];
export type Role = Schemas['MemberRole'];

/** Rows of one request. */
export const MOST = 100;

type PageOf<T> = { items: T[]; next_page_id: string | null };
type Part = { limit: number; page_id?: string };

/** What comes in pages, as a whole. */
export async function wholeOf<T>(load: (part: Part) => Promise<PageOf<T>>, page = ''): Promise<T[]> {
  const { items, next_page_id: next } = await load({ limit: MOST, ...given({ page_id: page }) });
  return next === null ? items : [...items, ...(await wholeOf(load, next))];
}

export const usersQuery = queryOptions({
  queryKey: ['users'],
  queryFn: () => wholeOf((part) => bodyOf(api.GET('/api/v1/users', by(part)))),
});

/** Id of the organization that all users are members of. */
export const organizationQuery = {
  ...bodyQuery(['organizations'], () => api.GET('/api/organizations')),
  select: ({ items }: Schemas['OrganizationPage']) => items.find(({ is_personal: isPersonal }) => !isPersonal)?.id,
};

/** Where no owner is enabled, administrators do what owners may. */
export function mayGiveRoles(users: readonly User[], id: string | undefined): boolean {
  const owners = users.filter(({ role, disabled_at: disabled }) => role === 'owner' && disabled === null);
  return owners.length === 0 || owners.some((owner) => owner.id === id);
}
