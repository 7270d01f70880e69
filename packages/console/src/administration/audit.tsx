import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client.js';
import { AUDIT_ACTIONS } from '../../generated/audit-actions.js';
import { given, Options, SelectField, TextField } from '../ui/form.js';
import { Button, Empty, Loaded, Section, Table } from '../ui/blocks.js';
import { Ago } from '../ui/moments.js';
import { usersQuery } from './users.js';

const ALL = { action: '', actor_user_id: '', since: '', until: '' };

type Filter = typeof ALL;

/** What a field of a local time means. */
function instant(time: string): string {
  return time === '' ? '' : new Date(time).toISOString();
}

function pageOf(filter: Filter, page: string) {
  const { action, actor_user_id, since, until } = filter;
  const query = given({ action, actor_user_id, since: instant(since), until: instant(until), page_id: page });
  return bodyOf(
    api.GET('/api/v1/audit', { params: { query: { limit: 50, ...(query as { action: Schemas['AuditAction'] }) } } }),
  );
}

export function Audit() {
  const [filter, setFilter] = useState(ALL);
  const users = useQuery(usersQuery).data ?? [];
  const entries = useInfiniteQuery({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam }) => pageOf(filter, pageParam),
    initialPageParam: '',
    getNextPageParam: ({ next_page_id: next }) => next,
    placeholderData: (before) => before,
  });
  const nameOf = (id: string | null) => users.find((user) => user.id === id)?.email ?? id;
  const bind = (name: keyof Filter) => ({
    value: filter[name],
    onChange: ({ target }: { target: { value: string } }) => setFilter({ ...filter, [name]: target.value }),
  });
  return (
    <Section title="Audit" lead="Who did what, the newest first. Entries are never changed.">
      <form className="filters" aria-label="Filter of the audit" name="audit">
        <SelectField label="Action" {...bind('action')}>
          <Options of={[['', 'All actions'], ...AUDIT_ACTIONS.map((action) => [action, action] as const)]} />
        </SelectField>
        <SelectField label="User" {...bind('actor_user_id')}>
          <Options of={[['', 'All users'], ...users.map(({ id, email }) => [id, email] as const)]} />
        </SelectField>
        <TextField label="Since" type="datetime-local" {...bind('since')} />
        <TextField label="Until" type="datetime-local" {...bind('until')} />
      </form>
      <Loaded query={entries} name="the audit">
        {({ pages: [first, ...more] }) =>
          first?.items.length === 0 ? (
            <Empty title="No entry matches the filter." />
          ) : (
            <Table
              name="Entries of the audit"
              columns={['When', 'Action', 'Who', 'What', 'From']}
              rows={[first, ...more]
                .flatMap((page) => page?.items ?? [])
                .map(({ id, time, action, outcome, actor, resource, client_address: address }) => ({
                  key: id,
                  cells: [
                    <Ago time={time} />,
                    <>
                      <code>{action}</code> {outcome === 'done' ? '' : outcome}
                    </>,
                    nameOf(actor.user_id) ?? actor.kind,
                    <>
                      {resource.type.replaceAll('_', ' ')} <code>{nameOf(resource.id)}</code>
                    </>,
                    address,
                  ],
                }))}
            />
          )
        }
      </Loaded>
      {entries.hasNextPage && (
        <Button isBusy={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
          Show older
        </Button>
      )}
    </Section>
  );
}
