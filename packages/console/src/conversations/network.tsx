import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, type Schemas } from '../api/client.js';
import { useAction } from '../ui/actions.js';
import { Ago, Button, Empty, Row, Rows } from '../ui/blocks.js';
import { requestsQuery } from './conversation-queries.js';

export type Denial = { host: string; port: number; reason: string; rule: string | null; phase: string };
type Rules = { allow?: unknown[] };

const WHY: Record<string, string> = {
  rule: 'no rule allows it',
  address: 'it is an address, or its name leads to none that may be reached',
  credential: 'only credentials of this sandbox may be used there',
  method: 'its rule does not allow the method',
  path: 'its rule does not allow the path',
  protocol: 'the request cannot be passed on',
};

async function addRule(entry: object): Promise<void> {
  const { sandbox_egress: rules, from_organization: shared } = await bodyOf(api.GET('/api/v1/settings'));
  if (!rules || shared.includes('sandbox_egress')) {
    throw new Error('You have no rules of your own: those of your organization, the start or the operator refuse it.');
  }
  const { allow = [] } = rules as Rules;
  await bodyOf(api.POST('/api/v1/settings', { body: { sandbox_egress: { ...rules, allow: [...allow, entry] } } }));
}

/** What programs of the sandbox asked for, newest first. */
export function Network({ sandbox }: { sandbox: string }) {
  const none = (
    <Empty title="No requests">They are listed where rules say what the sandbox may reach, or keys stay outside.</Empty>
  );
  return (
    <Rows query={useQuery(requestsQuery(sandbox))} name="requests" empty={none}>
      {(request, index) => (
        <Row
          key={`${request.at} ${index}`}
          title={<code>{[request.method, `${placeOf(request)}${request.path ?? ''}`].filter(Boolean).join(' ')}</code>}
          facts={[<Ago time={request.at} />, request.denied === null && resultOf(request)]}
          more={request.denied && <Denied denial={{ ...request, reason: request.denied }} sandbox={sandbox} />}
        />
      )}
    </Rows>
  );
}

/** A refusal of the host itself is told from one of the proxy. */
function resultOf({ status, phase }: Schemas['EgressRequest']): string {
  return `${status === null ? 'Passed through' : `The host answered ${status}`}${phase === 'setup' ? ', in the setup' : ''}`;
}

function placeOf({ host, port }: Pick<Denial, 'host' | 'port'>): string {
  return [80, 443].includes(port) ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * What the sandbox was refused by the rules of its network, and what its owner can do about it.
 * @param sandbox null: the user may only read
 */
export function Denied({ denial, sandbox }: { denial: Denial; sandbox: string | null }) {
  const { reason, rule, phase } = denial;
  const place = placeOf(denial);
  const once = useAction((id: string) =>
    bodyOf(api.POST('/api/v1/sandboxes/{id}/egress/allow', { ...at(id), body: { host: place, once: true } })),
  );
  const always = useAction(() => addRule({ host: place }));
  const why = `${WHY[reason] ?? reason}${rule === null ? '' : ` (${rule})`}${phase === 'setup' ? ', in the setup' : ''}`;
  return (
    <div className="actions">
      <span>
        <code>{place}</code> was refused by the proxy: {why}.
      </span>
      {sandbox !== null && !['credential', 'protocol'].includes(reason) && (
        <>
          <Button isBusy={once.isPending} onClick={() => once.mutate(sandbox)} text="Allow once" />
          <Button isBusy={always.isPending} onClick={() => always.mutate()} text="Add a rule" />
          {once.isSuccess && <span role="status">The next request may pass, within ten minutes.</span>}
          {always.isSuccess && <span role="status">Your settings allow it from now on.</span>}
        </>
      )}
    </div>
  );
}
