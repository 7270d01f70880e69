import { useQuery } from '@tanstack/react-query';
import { api, bodyOf } from '../api/client.js';
import { Badge, Loaded, Row, Section } from '../ui/blocks.js';
import { duration } from '../ui/moments.js';

const REFRESH_MS = 10_000;

/** What the service is doing: whether it is ready and why not, what waits, and which version runs. */
export function Service() {
  const service = useQuery({
    queryKey: ['service'],
    queryFn: async () => {
      const [readiness, info, starts] = await Promise.all([
        bodyOf(api.GET('/health/ready')),
        bodyOf(api.GET('/server_info')),
        bodyOf(api.GET('/api/v1/app-conversations/start-tasks/search')),
      ]);
      const waiting = starts.items.filter(({ status }) => status !== 'READY' && status !== 'ERROR');
      return { ...readiness, ...info, waiting: waiting.length };
    },
    refetchInterval: REFRESH_MS,
  });
  return (
    <Section title="Service" lead="Of the replica that answered, every ten seconds.">
      <Loaded query={service} name="the state of the service">
        {({ status, parts, version, uptime, instance_id: replica, waiting }) => (
          <>
            <dl className="figures">
              {Object.entries({
                Readiness: <Badge state={status} />,
                Version: version,
                Uptime: duration(uptime),
                'Your starts in the queue': waiting,
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
          </>
        )}
      </Loaded>
    </Section>
  );
}
