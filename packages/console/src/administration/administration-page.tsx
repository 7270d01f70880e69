import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, by, type Schemas } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Ago, Badge, Contents, duration, Loaded, Pairs, Row, Section, Table, usePages } from '../ui/blocks.js';
import { ActionButton } from '../ui/actions.js';
import { given, SelectField, TextField, useFilter } from '../ui/form.js';
import { AUDIT_ACTIONS } from '../../generated/audit-actions.js';
import { SHARED_TITLES, SharedSettings } from './shared-settings.js';
import { MOST, usersQuery } from './user-queries.js';
import { Users } from './users.js';

const REFRESH_MS = 10_000;

export function AdministrationPage() {
  return (
    <Page title="Administration">
      <Contents titles={['Service', 'Users', ...SHARED_TITLES, 'Sandboxes', 'Audit']} />
      <Service />
      <Users />
      <SharedSettings />
      <Sandboxes />
      <Audit />
    </Page>
  );
}

/** What the service is doing: whether it is ready and why not, what waits, and which version runs. */
function Service() {
  const service = useQuery({
    queryKey: ['service'],
    queryFn: async () => {
      const [found, info] = await Promise.all([
        bodyOf(api.GET('/api/v1/diagnostics')),
        bodyOf(api.GET('/server_info')),
      ]);
      return { ...found, ...info };
    },
    refetchInterval: REFRESH_MS,
  });
  return (
    <Section title="Service" lead="What the service does for all users, as one of its replicas sees it.">
      <Loaded query={service} name="the state of the service">
        {({ parts, versions, uptime, instance_id: replica, activity, log }) => (
          <>
            <Pairs
              className="figures"
              of={{
                Readiness: <Badge state={parts.every(({ status }) => status === 'ok') ? 'ok' : 'degraded'} />,
                ...figuresOf(activity),
                Version: versions['slipway'],
                'Node.js': versions['node'],
                Uptime: duration(uptime),
                Replica: <code>{replica.slice(0, 8)}</code>,
              }}
            />
            <ul className="rows">
              {parts.map(({ name, status: state, advice, cause }) => (
                <Row key={name} title={name.replaceAll('_', ' ')} facts={[advice, cause].filter(Boolean).join(' ')}>
                  <Badge state={state} />
                </Row>
              ))}
            </ul>
            <details>
              <summary>Last lines of the log</summary>
              <pre className="content" tabIndex={0}>
                {log.join('\n')}
              </pre>
            </details>
          </>
        )}
      </Loaded>
    </Section>
  );
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function figuresOf({ starts_waiting: waiting, starts, conversations, sandboxes }: Schemas['Activity']) {
  const { READY: _ready, ERROR: _failed, ...underWay } = starts;
  const queued = sum(waiting);
  return {
    Queue: queued === 0 ? 'empty' : `${queued} starts wait, ${waiting['place']} of them for a sandbox`,
    'Starts under way': sum(underWay),
    'Agents at work': conversations['running'],
    'Running sandboxes': sandboxes['RUNNING'],
  };
}

const SANDBOX_COLUMNS = ['Sandbox', 'Owner', 'State', 'Created', ''];

function Sandboxes() {
  const users = useQuery(usersQuery);
  const sandboxes = useQuery({
    queryKey: ['all-sandboxes'],
    queryFn: async () => (await bodyOf(api.GET('/api/v1/sandboxes/search', by({ all: true, limit: MOST })))).items,
    refetchInterval: REFRESH_MS,
  });
  const ownerOf = (id: string) => users.data?.find((user) => user.id === id)?.email ?? id;
  return (
    <Section
      title="Sandboxes"
      lead={`The newest ${MOST} of all users. A stopped sandbox keeps its files, and its owner can resume it.`}>
      <Table query={sandboxes} name="sandboxes of all users" empty="No sandboxes yet" columns={SANDBOX_COLUMNS}>
        {({ id, created_by_user_id: owner, status, created_at: made }) => [
          <code>{id}</code>,
          ownerOf(owner),
          <Badge state={status} />,
          <Ago time={made} />,
          <ActionButton
            disabled={status !== 'RUNNING' && status !== 'STARTING'}
            title={`Stop ${id}`}
            act={() => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', at(id)))}
            text="Stop"
          />,
        ]}
      </Table>
    </Section>
  );
}

const AUDIT_COLUMNS = ['When', 'Action', 'Who', 'What', 'From'];
const ALL = { action: '', actor_user_id: '', since: '', until: '' };

/** "API key: create" */
function actionText(action: string): string {
  const words = action.replaceAll('_', ' ').replace('.', ': ').replace('api', 'API').replace('llm', 'model');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What a field of a local time means. */
function instant(time: string): string {
  return time === '' ? '' : new Date(time).toISOString();
}

function Audit() {
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
  const actions = AUDIT_ACTIONS.map((action) => [action, actionText(action)] as const);
  const people = users.map(({ id, email }) => [id, email] as const);
  const nameOf = (id: string | null) => users.find((user) => user.id === id)?.email ?? id;
  return (
    <Section title="Audit" lead="Who did what, newest first. Entries never change.">
      <form className="filters" aria-label="Filter of the audit" name="audit">
        <SelectField label="Action" options={[['', 'All actions'], ...actions]} {...bind('action')} />
        <SelectField label="User" options={[['', 'All users'], ...people]} {...bind('actor_user_id')} />
        <TextField label="Since" type="datetime-local" {...bind('since')} />
        <TextField label="Until" type="datetime-local" {...bind('until')} />
      </form>
      <Table query={entries} name="entries of the audit" empty="No entry matches the filter." columns={AUDIT_COLUMNS}>
        {({ time, action, outcome, actor, resource, client_address: address }) => [
          <Ago time={time} />,
          <>
            {actionText(action)} {outcome !== 'done' && `(${outcome})`}
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
