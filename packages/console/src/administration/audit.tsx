import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, by, type Schemas } from '../api/client.js';
import { AUDIT_ACTIONS } from '../../generated/audit-actions.js';
import { given, SelectField, TextField, useFilter } from '../ui/form.js';
import { Ago, Section, Table, usePages } from '../ui/blocks.js';
import { usersQuery } from './users.js';

const ALL = { action: '', actor_user_id: '', since: '', until: '' };

/** What a field of a local time means. */
function instant(time: string): string {
  return time === '' ? '' : new Date(time).toISOString();
}

export function Audit() {
  const [filter, bind] = useFilter(ALL);
  const users = useQuery(usersQuery).data ?? [];
  const { query: entries, older } = usePages({
    queryKey: ['audit', filter],
    load: (page) => {
      const chosen = given({ ...filter, since: instant(filter.since), until: instant(filter.until) });
      const query = { limit: 50, ...page, ...(chosen as { action: Schemas['AuditAction'] }) };
      return bodyOf(api.GET('/api/v1/audit', by(query)));
    },
  });
  const nameOf = (id: string | null) => users.find((user) => user.id === id)?.email ?? id;
  return (
    <Section title="Audit" lead="Who did what, the newest first. Entries are never changed.">
      <form className="filters" aria-label="Filter of the audit" name="audit">
        <SelectField
          label="Action"
          options={[['', 'All actions'], ...AUDIT_ACTIONS.map((action) => [action, action] as const)]}
          {...bind('action')}
        />
        <SelectField
          label="User"
          options={[['', 'All users'], ...users.map(({ id, email }) => [id, email] as const)]}
          {...bind('actor_user_id')}
        />
        <TextField label="Since" type="datetime-local" {...bind('since')} />
        <TextField label="Until" type="datetime-local" {...bind('until')} />
      </form>
      <Table
        query={entries}
        name="entries of the audit"
        empty="No entry matches the filter."
        columns={['When', 'Action', 'Who', 'What', 'From']}>
        {({ time, action, outcome, actor, resource, client_address: address }) => [
          <Ago time={time} />,
          <>
            <code>{action}</code> {outcome === 'done' ? '' : outcome}
          </>,
          nameOf(actor.user_id) ?? actor.kind,
          <>
            {resource.type.replaceAll('_', ' ')} <code>{nameOf(resource.id)}</code>
          </>,
          address,
        ]}
      </Table>
      {older}
    </Section>
  );
}
