import { useQuery } from '@tanstack/react-query';
import { type Schemas, sessionQuery } from '../api/client.js';
import { Checks, chosenOf, type Fields } from './form.js';

type Scope = Schemas['Scope'];

const MAY: Record<Scope, string> = {
  read: 'Read',
  run: 'Start and continue work',
  settings: 'Change settings, secrets, keys and automations',
  admin: 'Administer',
};
const SHORT: Record<Scope, string> = { read: 'read', run: 'work', settings: 'change settings', admin: 'administer' };
const LEGEND = 'May';

/** "May read, work". */
export function mayOf(scopes: readonly Scope[]): string {
  return `May ${scopes.map((scope) => SHORT[scope]).join(', ')}`;
}

/** What a key may do, of what this session may: the service issues none that may more. */
export function ScopesField({ isAdmin }: { isAdmin: boolean }) {
  const { scopes: own = [] } = useQuery(sessionQuery).data ?? {};
  const offered = own.filter((scope) => scope !== 'admin' || isAdmin);
  const options = offered.map((scope) => [scope, MAY[scope]] as const);
  return (
    <Checks legend={LEGEND} member="scopes" options={options} chosen={offered.filter((scope) => scope !== 'admin')} />
  );
}

export function scopesOf(field: Fields): Scope[] {
  return chosenOf(field, LEGEND) as Scope[];
}
