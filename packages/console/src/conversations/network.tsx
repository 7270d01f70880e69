import { api, at, bodyOf } from '../api/client.js';
import { useAction } from '../ui/actions.js';
import { Button } from '../ui/blocks.js';
import type { AgentEvent } from './events.js';

type Denial = { host: string; port: number; method?: string; reason: string; rule: string | null; phase: string };
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

/**
 * What the sandbox was refused by the rules of its network, and what its owner can do about it.
 * @param sandbox null: the user may only read
 */
export function Denied({ event, sandbox }: { event: AgentEvent; sandbox: string | null }) {
  const { host, port, reason, rule, phase } = event.value as Denial;
  const place = [80, 443].includes(port) ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const once = useAction((id: string) =>
    bodyOf(api.POST('/api/v1/sandboxes/{id}/egress/allow', { ...at(id), body: { host: place, once: true } })),
  );
  const always = useAction(() => addRule({ host: place }));
  const why = `${WHY[reason] ?? reason}${rule === null ? '' : ` (${rule})`}${phase === 'setup' ? ', in the setup' : ''}`;
  return (
    <div className="actions">
      <span>
        <code>{place}</code> was refused: {why}.
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
