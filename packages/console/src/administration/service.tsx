import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, type Schemas } from '../api/client.js';
import { Ago, Badge, Button, duration, Loaded, Row, Section, Table } from '../ui/blocks.js';
import { useAction } from '../ui/form.js';
import { usersQuery } from './users.js';

const REFRESH_MS = 10_000;

/** What the service is doing: whether it is ready and why not, what waits, and which version runs. */
export function Service() {
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
            <dl className="figures">
              {Object.entries({
                Readiness: <Badge state={parts.every(({ status }) => status === 'ok') ? 'ok' : 'degraded'} />,
                ...figuresOf(activity),
                Version: versions['slipway'],
                'Node.js': versions['node'],
                Uptime: duration(uptime),
                Replica: <code>{replica.slice(0, 8)}</code>,
              }).map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
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

export function Sandboxes() {
  const users = useQuery(usersQuery);
  const sandboxes = useQuery({
    queryKey: KEY,
    queryFn: async () => {
      const params = { query: { all: true, limit: MOST } };
      return (await bodyOf(api.GET('/api/v1/sandboxes/search', { params }))).items;
    },
    refetchInterval: REFRESH_MS,
  });
  const stop = useAction((id: string) => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', at(id))), KEY);
  const ownerOf = (id: string) => users.data?.find((user) => user.id === id)?.email ?? id;
  return (
    <Section
      title="Sandboxes"
      lead={`The newest ${MOST} of all users. What is stopped keeps its files, and its owner can resume it.`}>
      <Loaded query={sandboxes} name="sandboxes" empty="No sandbox is there.">
        {(list) => (
          <Table
            name="Sandboxes of all"
            columns={['Sandbox', 'Owner', 'State', 'Made', '']}
            rows={list.map(({ id, created_by_user_id: owner, status, created_at: made }) => ({
              key: id,
              cells: [
                <code>{id}</code>,
                ownerOf(owner),
                <Badge state={status} />,
                <Ago time={made} />,
                <Button
                  disabled={status !== 'RUNNING' && status !== 'STARTING'}
                  isBusy={stop.isPending && stop.variables === id}
                  title={`Stop ${id}`}
                  onClick={() => stop.mutate(id)}
                  text="Stop"
                />,
              ],
            }))}
          />
        )}
      </Loaded>
    </Section>
  );
}
