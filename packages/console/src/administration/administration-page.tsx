import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, by, type Schemas } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Ago, Badge, Contents, duration, Loaded, Pairs, Row, Section, Table } from '../ui/blocks.js';
import { ActionButton } from '../ui/actions.js';
import { Audit } from './audit.js';
import { Users, usersQuery } from './users.js';

const REFRESH_MS = 10_000;

export function AdministrationPage() {
  return (
    <Page title="Administration">
      <Contents titles={['Service', 'Users', 'Sandboxes', 'Audit']} />
      <Service />
      <Users />
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
    <Section title="Service" lead="What it does for all users, and the replica that answered.">
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
    Queue: queued === 0 ? 'empty' : `${queued} starts wait, ${waiting['place']} of them for a place`,
    'Starts under way': sum(underWay),
    'Agents at work': conversations['running'],
    'Running sandboxes': sandboxes['RUNNING'],
  };
}

const KEY = ['all-sandboxes'];
const MOST = 100;

function Sandboxes() {
  const users = useQuery(usersQuery);
  const sandboxes = useQuery({
    queryKey: KEY,
    queryFn: async () => (await bodyOf(api.GET('/api/v1/sandboxes/search', by({ all: true, limit: MOST })))).items,
    refetchInterval: REFRESH_MS,
  });
  const ownerOf = (id: string) => users.data?.find((user) => user.id === id)?.email ?? id;
  return (
    <Section
      title="Sandboxes"
      lead={`The newest ${MOST} of all users. What is stopped keeps its files, and its owner can resume it.`}>
      <Table
        query={sandboxes}
        name="sandboxes of all"
        empty="No sandbox is there."
        columns={['Sandbox', 'Owner', 'State', 'Made', '']}>
        {({ id, created_by_user_id: owner, status, created_at: made }) => [
          <code>{id}</code>,
          ownerOf(owner),
          <Badge state={status} />,
          <Ago time={made} />,
          <ActionButton
            disabled={status !== 'RUNNING' && status !== 'STARTING'}
            title={`Stop ${id}`}
            act={() => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', at(id)))}
            old={[KEY]}
            text="Stop"
          />,
        ]}
      </Table>
    </Section>
  );
}
