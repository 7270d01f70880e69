import { queryOptions, useQuery } from '@tanstack/react-query';
import type { ComponentProps } from 'react';
import { api, bodyOf, meQuery } from '../api/client.js';
import { type Fields, given, SelectField } from '../ui/form.js';

const OWN = 'CodeActAgent';

export const FOLLOW = { label: 'Follow its pull request until it is green', name: 'follow' };

const agentsQuery = queryOptions({ queryKey: ['agents'], queryFn: () => bodyOf(api.GET('/api/v1/config/agents')) });
const profilesQuery = queryOptions({
  queryKey: ['profiles'],
  queryFn: async () => (await bodyOf(api.GET('/api/v1/settings/profiles'))).profiles,
});

/** The model and the agent of a start. What the settings name is preselected; one that is stored stays, offered or not. */
export function ModelAndAgent({ model = '', agent = '' }: { model?: string | null; agent?: string | null }) {
  const settings = useQuery(meQuery).data;
  const profiles = (useQuery(profilesQuery).data ?? []).map(({ name, model: of }) => [name, `${name}: ${of}`] as const);
  const models = new Map([[model ?? '', model ?? ''], ...profiles, ['', settings?.llm_model ?? 'None yet']]);
  return (
    <>
      <SelectField label="Model" options={models} defaultValue={model ?? ''} />
      <AgentField preselected={settings?.agent} defaultValue={agent ?? ''} />
    </>
  );
}

type AgentProps = { preselected: string | null | undefined } & ComponentProps<'select'>;

/** The empty value stands for what is preselected. */
export function AgentField({ preselected: named, ...rest }: AgentProps) {
  const preselected = named ?? OWN;
  const agents = [...(useQuery(agentsQuery).data ?? [OWN]), String(rest.defaultValue || preselected)];
  const others = agents.filter((agent) => agent !== preselected).map((agent) => [agent, agentName(agent)] as const);
  return <SelectField label="Agent" options={new Map([['', agentName(preselected)], ...others])} {...rest} />;
}

function agentName(agent: string): string {
  return agent === OWN ? 'Slipway' : `${agent.replace(/^acp:/, '')} (ACP)`;
}

export function choiceOf(field: Fields) {
  const follow = field('follow') === '' ? {} : { follow: {} };
  return { ...given({ llm_profile: field('model'), agent: field('agent') }), ...follow };
}
